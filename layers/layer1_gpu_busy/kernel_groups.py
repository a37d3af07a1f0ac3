"""What kind of work a kernel does, told from its name: one ordered table of patterns.

A trace names kernels and nothing else says what they compute, so the name decides. The first pattern that
matches wins; the order resolves names that fit two groups (a pointwise kernel that Inductor named after the
`addmm` it follows is no GEMM; a KV-cache write called `reshape_and_cache_flash` is no attention). Copies,
sets and replays recorded as a whole are told by their kind, not by name. A name that no pattern knows is
`other`, so the share of a group is a lower bound. Softmax and sort kernels serve sampling and much else, and
their names do not say which: they are not `sampling`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

import numpy as np

from parsers.trace_model import GRAPH, I8, MEMCPY, MEMSET, Bools, DeviceOps, DeviceTrace

REMEMBERED_NAMES = 8192
"""Names whose group is kept: a trace has a few thousand distinct ones, and several tables ask for each."""


class KernelGroup(StrEnum):
    """What a device operation does."""

    COMMUNICATION = "communication"
    ATTENTION = "attention"
    CONVOLUTION = "convolution"
    GEMM = "gemm"
    MOE_ROUTING = "moe routing"
    SAMPLING = "sampling"
    NORMALISATION = "normalisation"
    INDEXING = "indexing"
    ELEMENTWISE = "elementwise"
    MEMCPY = "memcpy"
    MEMSET = "memset"
    GRAPH = "graph replay"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class NamePattern:
    """Kernel names of one group: a regular expression (searched, case ignored) and names that it is for."""

    group: KernelGroup
    pattern: re.Pattern[str]
    examples: tuple[str, ...]


def _names(group: KernelGroup, pattern: str, *examples: str) -> NamePattern:
    return NamePattern(group, re.compile(pattern, re.IGNORECASE), examples)


PATTERNS: tuple[NamePattern, ...] = (
    _names(
        KernelGroup.ELEMENTWISE,
        r"^triton_(poi|red|per|for)_",
        "triton_poi_fused__to_copy_1",
        "triton_poi_fused_addmm_relu_0",
        "triton_red_fused_native_layer_norm_3",
    ),
    _names(
        KernelGroup.COMMUNICATION,
        r"nccl|rccl|cross_device_reduce|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|(one|two)_?shot"
        r"|deep_?ep|nvshmem|(inter|intra)node::|(ep|moe|a2a)_?(dispatch|combine)|quick_?reduce|mscclpp",
        "ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)",
        "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)",
        "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 2>(vllm::RankData*, vllm::RankSignals)",
        "void deep_ep::intranode::dispatch<4, 768, 8192>(int4*, float*, int*)",
    ),
    _names(KernelGroup.MEMCPY, r"^__amd_rocclr_copyBuffer", "__amd_rocclr_copyBuffer"),
    _names(KernelGroup.MEMSET, r"^__amd_rocclr_fillBuffer", "__amd_rocclr_fillBufferAligned"),
    _names(
        KernelGroup.INDEXING,
        r"reshape_and_cache|store_?kv_?cache|kv_?indices|concat_and_cache",
        "void vllm::reshape_and_cache_flash_kernel<__hip_bfloat16, __hip_bfloat16, "
        "(vllm::Fp8KVCacheDataType)0>()",
        "void (anonymous namespace)::store_kvcache<2048l, 4, false, long>()",
        "create_flashinfer_kv_indices_triton",
    ),
    _names(
        KernelGroup.ATTENTION,
        r"flash_?(fwd|bwd|mla|decode)|fmha|attn|attention|(^|[_:])mla_|(batch|single)(prefill|decode)with"
        r"|^_fwd_(grouped_)?kernel|^reduce_segments",
        "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 128, 4, "
        "false>>()",
        "_ZN7ck_tile6kentryILi2ENS_38FmhaBatchPrefillWithPagedKVCacheKernelINS_40BlockFmhaBatchPrefillPipeline",
        "kernel_unified_attention_3d",
        "attn_fwd",
        "reduce_segments",
        "void flashinfer::BatchDecodeWithPagedKVCacheKernel<>()",
    ),
    _names(
        KernelGroup.CONVOLUTION,
        r"convolve|conv\dd|fprop|dgrad|wgrad|scudnn|winograd|fft2d_[rc]2[cr]|gcgemm|compute\w*OffsetsKernel|im2col"
        r"|nchwToNhwc|nhwcToNchw|miopen.*conv",
        "sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x128x16_execute_kernel",
        "void cudnn::detail::dgrad_engine<float, 512, 6, 5, 3, 3, 3, false>()",
        "volta_scudnn_128x128_stridedB_splitK_small_nn_v1",
        "void implicit_convolve_sgemm<float, float, 1024, 6, 7, 3, 3, 5, 1, false, true, true>()",
        "cask_cudnn::computeWgradBOffsetsKernel(cask_cudnn::ComputeWgradBOffsetsParams)",
    ),
    _names(
        KernelGroup.MOE_ROUTING,
        r"routing|top_?k_?gating|topk_?softmax|grouped_?topk|moe_(align|sum|permute)|bitmatrix|^_topk_forward",
        "_combined_routing_compute",
        "_topk_forward",
        "_sum_bitmatrix_rows",
        "void vllm::moe::topkGatingSoftmax<8, 64, 4, 16>()",
    ),
    _names(
        KernelGroup.GEMM,
        r"(?<!fb)gemm|gemv|cublas|Cijk_|matmul|wgmma|nvjet|splitk_?reduce|(^|_)mm_kernel|fused_moe|dot_kernel"
        r"|^triton_tem_|reduce_1Block_kernel",
        "ampere_fp16_s16816gemm_fp16_128x256_ldg8_relu_f2f_stages_64x3_tn",
        "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize64x64x64_warpgroupsize1x1x1_execute_kernel__5x_cublas",
        "void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_32x32_128x2_tn_align8>()",
        "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT128x256x32_MI16x16x1_SN_LDSB1",
        "_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1_swiglu",
        "void splitKreduce_kernel<32, 16, int, __half, __half, float, __half, true, true, false>()",
        "void gemv2T_kernel_val<int, int, float, float, float, float, 128, 16, 2, 2, false, false>()",
    ),
    _names(
        KernelGroup.SAMPLING,
        r"arg_?max|multinomial|sampling|top_?[kp]_?(renorm|mask)|gather_?top_?k|(sb|mb)topk|radixFindKth|gumbel",
        "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::ArgMaxOps<float>>>()",
        "void flashinfer::sampling::TopKTopPSamplingFromProbKernel<1024>()",
        "void at::native::sbtopk::gatherTopK<float, unsigned int, 2, false>()",
    ),
    _names(
        KernelGroup.NORMALISATION,
        r"(layer|batch|rms|group|instance)_?norm|::bn_(fw|bw)_|RowwiseMoments|GammaBeta",
        "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>()",
        "_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi64ELi8ELb0ELb0ELb1ELi1EEEvPT0_PT_PfS4_S4_S4_diiiiiiib",
        "void cudnn::bn_bw_1C11_kernel_new<float, float, float2, 512, true, 1>()",
    ),
    _names(
        KernelGroup.INDEXING,
        r"(?<!rotary_)embedding|indices|offsets_range|index(ing)?_?(backward|elementwise|select|func|copy|put|kernel)"
        r"|gather|scatter|CatArray|permute|linearize"
        r"|Radix_?Sort|bitonic|DeviceScan|ReduceByKey|searchsorted|bucketize|rocprim|cub::Device",
        "void split_embedding_codegen_forward_unweighted_kernel<c10::Half, c10::Half, float, false, long, "
        "2ul>()",
        "void fbgemm_gpu::permute_2D_data_kernel<false, int, int, decltype(nullptr)>()",
        "void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 2, 64, 64>()",
        "void cub::DeviceRadixSortOnesweepKernel<cub::DeviceRadixSortPolicy<long, int, int>::Policy800>()",
    ),
    _names(
        KernelGroup.ELEMENTWISE,
        r"elementwise|reduce_kernel|softmax|multi_tensor_apply|act_and_mul|rotary|dropout|pool_|_pool|distribution_"
        r"|^triton__|scalePackedTensor|quantize|qparam|FP8rowwise",
        "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>()",
        "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float>>>()",
        "void (anonymous namespace)::softmax_warp_forward<c10::Half, float, float, 6, false, false>()",
        "void vllm::rotary_embedding_kernel<c10::BFloat16, true>()",
    ),
)

GROUPS: tuple[KernelGroup, ...] = tuple(KernelGroup)
"""The groups in the order of the codes that `group_codes` returns."""

_CODE_OF = {group: code for code, group in enumerate(GROUPS)}


@lru_cache(maxsize=REMEMBERED_NAMES)
def group_of(kernel_name: str) -> KernelGroup:
    """The group of a kernel by its name; OTHER when no pattern knows it."""
    return next((p.group for p in PATTERNS if p.pattern.search(kernel_name)), KernelGroup.OTHER)


def group_codes(trace: DeviceTrace, ops: DeviceOps) -> I8:
    """The index into GROUPS of each operation; shape (n,). Each distinct name is looked at once."""
    name_ids, which = np.unique(ops.name_id, return_inverse=True)
    codes = np.array([_CODE_OF[group_of(trace.names[i])] for i in name_ids], np.int8)[which]
    codes[ops.kind == MEMCPY] = _CODE_OF[KernelGroup.MEMCPY]
    codes[ops.kind == MEMSET] = _CODE_OF[KernelGroup.MEMSET]
    codes[ops.kind == GRAPH] = _CODE_OF[KernelGroup.GRAPH]
    return codes


def in_groups(codes: I8, groups: Sequence[KernelGroup]) -> Bools:
    """Which operations, given their codes, belong to one of the groups; shape (n,)."""
    return np.isin(codes, [_CODE_OF[g] for g in groups])
