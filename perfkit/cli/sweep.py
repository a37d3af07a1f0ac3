"""`perfkit sweep`: throughput, latency, accuracy and utilisation over concurrency."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from perfkit.cli import options, output
from perfkit.cli import sweep_options as ask
from perfkit.cli.ending import told_to_end
from perfkit.cli.record import record_result


def sweep(
    server: ask.Server = None,
    launch: ask.Launch = None,
    engine_preset: ask.EnginePreset = None,
    pipeline: ask.Pipeline = None,
    set_: ask.Set = None,
    max_concurrency: ask.MaxConcurrency = None,
    concurrency: ask.Concurrency = None,
    open_loop: ask.OpenLoop = None,
    arrivals: ask.Arrivals = ask.POISSON,
    endpoint: ask.Endpoint = None,
    model: ask.Model = None,
    path: ask.PathOption = "",
    stream: ask.Stream = True,
    field: ask.Field = None,
    data: ask.Data = None,
    repeats: ask.Repeats = None,
    seconds: ask.Seconds = None,
    requests: ask.Requests = None,
    warmup: ask.Warmup = ask.WARMUP_S,
    control: ask.Control = None,
    param: ask.Param = None,
    study: ask.StudyOption = None,
    slo: ask.SloOption = None,
    after_shed: ask.AfterShedOption = ask.DROP,
    timeout: ask.Timeout = None,
    minutes: ask.Minutes = None,
    header: ask.Header = None,
    client_processes: ask.Clients = None,
    samplers: ask.Samplers = True,
    calibrate: ask.Calibrate = False,
    resume: ask.Resume = False,
    json: options.Json = False,
    investigation: options.Investigation = options.DEFAULT_INVESTIGATION,
) -> int:
    """How do throughput, latency, accuracy and utilisation go with load, and where does the curve bend?

    Sweeps the bundled engine, a server that runs (--server), or one that it starts (--launch). Every finished
    request is on disk at once: after Ctrl-C or a kill, --resume goes on.

    Example: perfkit sweep --server http://127.0.0.1:8000 --max-concurrency 64
    """
    from layers.layer3_sweep.conclude import conclude, records_among
    from layers.layer3_sweep.target import require_listening
    from perfkit.cli.sweep_plan import DEFAULT_REPEATS, Wanted, plan_of, study_of, subject_of
    from perfkit.cli.sweep_run import resume_latest, run_new
    from perfkit.cli.sweep_view import show_sweep
    from perfkit.cli.usual_load import pipeline_at

    started = datetime.now(UTC)
    promised, headers = ask.slos(slo), ask.pairs("--header", header)
    with told_to_end() as told:
        if resume:
            given: dict[str, object] = {"--server": server, "--max-concurrency": max_concurrency}
            given |= {"--open-loop": open_loop, "--concurrency": concurrency}
            given |= {"--control": control, "--param": param, "--data": data, "--study": study}
            ask.refuse_with_resume(given)
            ran = resume_latest(ask.existing(investigation), headers, told.is_set, launch)
        elif study is not None:
            given = {"--server": server, "--launch": launch, "--engine-preset": engine_preset}
            given |= {"--pipeline": pipeline, "--set": set_, "--max-concurrency": max_concurrency}
            given |= {"--open-loop": open_loop, "--concurrency": concurrency}
            given |= {"--endpoint": endpoint, "--data": data, "--param": param}
            given |= {"--control": control, "--requests": requests, "--slo": slo, "--field": field}
            given |= {"--model": model, "--path": path, "--timeout": timeout, "--header": header}
            given |= {"--client-processes": client_processes, "--no-stream": not stream}
            given |= {"--after-shed": after_shed != ask.DROP, "--warmup": warmup != ask.WARMUP_S}
            given |= {"--arrivals": arrivals != ask.POISSON}
            ask.refuse_with_study(given)
            plan = study_of(study, repeats, seconds, minutes, samplers)
            how = {"anew": calibrate, "own_cap": False}
            ran = run_new(plan, investigation, headers, told.is_set, **how)
        else:
            wanted = Wanted(
                subject=subject_of(server, launch, engine_preset, pipeline, set_ or []),
                control=control,
                max_concurrency=max_concurrency,
                rates=open_loop or [],
                concurrency=concurrency,
                arrivals=arrivals,
                endpoint=endpoint,
                model=model,
                path=path,
                stream=stream,
                fields=ask.fields(field),
                data=data,
                repeats=DEFAULT_REPEATS if repeats is None else repeats,
                seconds=seconds,
                requests=requests,
                warmup_s=warmup,
                cells=ask.cells(param),
                after_shed=after_shed,
                timeout_s=timeout,
                minutes=minutes,
                processes=client_processes,
                samplers=samplers,
            )
            plan = plan_of(wanted)  # what cannot be is refused before anything is asked of a server
            if server is not None and launch is None:
                require_listening(server)
                plan = plan_of(replace(wanted, answering=pipeline_at(server, headers)))
            how = {"anew": calibrate, "own_cap": wanted.own_cap}
            ran = run_new(plan, investigation, headers, told.is_set, **how)
    result, artifacts = conclude(ran, promised)
    try:
        record_result(investigation, result, started, artifacts, records_among(artifacts))
    finally:  # what was found is shown even where it cannot be kept
        code = output.finish(result, as_json=json, show=show_sweep)
    return code
