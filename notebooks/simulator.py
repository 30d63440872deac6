"""What a sweep of the contention simulator found, from its Parquet rows alone.

    pip install -r notebooks/requirements.txt
    marimo edit notebooks/simulator.py -- --rows runs/NAME/rows.parquet

As a script it prints the tables:

    python notebooks/simulator.py --rows runs/NAME/rows.parquet
"""

import marimo

app = marimo.App(width="medium", app_title="Commit contention")


@app.cell
def _():
    import marimo as mo
    import polars as pl

    return mo, pl


@app.cell
def _(mo):
    # `marimo edit … -- --rows FILE` and `python simulator.py --rows FILE` both arrive here.
    rows_file = mo.cli_args().get("rows") or "rows.parquet"
    return (rows_file,)


@app.cell
def _(pl, rows_file):
    rows = pl.read_parquet(rows_file)
    settings = [
        name
        for name in [
            "experiment",
            "offered_per_s",
            "clients",
            "tables",
            "table_selection",
            "fast_append_ratio",
            "provider",
            "catalog",
            "catalog_latency_ms",
            "protocol",
            "retry",
        ]
        if rows[name].n_unique() > 1
    ]
    # The definition without censoring, where every cell was followed to its end.
    definition = "drain" if rows["drain"].all() else "table"
    return definition, rows, settings


@app.cell
def _(definition, mo, rows, settings):
    mo.md(
        f"""
        # Commit contention

        {rows["cell"].n_unique():,} cells, {rows["seed"].n_unique()} seeds. Simulated, not measured.
        What varies: {", ".join(settings) or "nothing"}. Metrics by the *{definition}* definition.
        """
    )
    return


@app.cell
def _(definition, pl, rows, settings):
    # One line a cell: means over seeds, and the standard error of the success rate.
    metrics = ["success_rate", "throughput_per_s", "latency_p50_ms", "latency_p99_ms", "mean_retries"]
    cells = (
        rows.group_by(["cell", *settings], maintain_order=True)
        .agg(
            *[pl.col(f"{definition}_all_{metric}").mean().alias(metric) for metric in metrics],
            (pl.col(f"{definition}_all_success_rate").std() / pl.len().sqrt()).alias("success_rate_error"),
            (pl.col("requests_wasted").sum() / pl.col("requests").sum()).alias("wasted_requests"),
            (pl.col("wasted_bytes").sum() / pl.col("moved_bytes").sum()).alias("wasted_bytes"),
        )
        .sort("cell")
    )
    print(cells)
    cells
    return (cells,)


@app.cell
def _(pl):
    def histogram(sketch: bytes) -> pl.DataFrame:
        """Durations in milliseconds and their counts, from a row's sketch: pairs of unsigned LEB128 numbers."""
        numbers, value, shift = [], 0, 0
        for byte in sketch:
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                numbers.append(value)
                value, shift = 0, 0
        return pl.DataFrame({"ms": numbers[0::2], "count": numbers[1::2]}).with_columns(pl.col("ms").cum_sum())

    return (histogram,)


@app.cell
def _(histogram, pl, rows):
    # Percentiles over all seeds together, which no mean of percentiles gives.
    def pooled(sketches: pl.Series, percents: list[float]) -> list[float | None]:
        merged = pl.concat([histogram(sketch) for sketch in sketches]).group_by("ms").agg(pl.col("count").sum()).sort("ms")
        if merged.is_empty():
            return [None for _ in percents]
        ranks = merged["count"].cum_sum()
        return [merged["ms"][(ranks >= ranks[-1] * percent / 100).arg_max()] for percent in percents]

    tails = pl.DataFrame(
        [
            {"cell": cell, **dict(zip(["p50_ms", "p99_ms", "p99_9_ms"], pooled(group["histogram_all"], [50, 99, 99.9])))}
            for (cell,), group in rows.select("cell", "histogram_all").group_by(["cell"], maintain_order=True)
        ]
    )
    print(tails)
    tails
    return


@app.cell
def _(cells, mo):
    # Success by load, a line for each value of the next setting that varies.
    def chart():
        try:
            import altair as alt
        except ImportError:
            return mo.md("`pip install altair` draws success by load.")
        if "offered_per_s" not in cells.columns:
            return mo.md("The load does not vary.")
        others = [name for name in ["tables", "retry", "protocol", "provider", "fast_append_ratio"] if name in cells.columns]
        encodings = {
            "x": alt.X("offered_per_s", title="offered load, transactions/s", scale=alt.Scale(type="log")),
            "y": alt.Y("success_rate", title="success rate", axis=alt.Axis(format="%")),
        }
        if others:
            encodings["color"] = alt.Color(f"{others[0]}:N")
        return alt.Chart(cells.to_arrow()).mark_line(point=True).encode(**encodings)

    success = chart()
    success
    return


if __name__ == "__main__":
    app.run()
