"""From an investigation to something a person reads: tables, Markdown, HTML, figures."""
