"""Examples at the end of each command's help; `tests/flows/cli/test_examples.py` runs them in this order."""

EXAMPLES = {
    "epsilon": (
        "privsweep epsilon --sampling poisson --sigma 1.1 --examples 60000 --batch-size 256 --epochs 10 --delta 1e-5",
        "privsweep epsilon --sampling shuffling --sigma 1 --steps 100 --delta 1e-6 --adjacency zero-out --explain",
    ),
    "noise": (
        "privsweep noise --epsilon 8 --sampling poisson --examples 60000 --batch-size 256 --epochs 10 --delta 1e-5",
        "privsweep noise --epsilon 1 --sampling none --delta 1e-6",
    ),
    "solve": (
        "privsweep solve epochs --epsilon 2 --sampling poisson --sigma 1.1 --examples 60000 --batch-size 256 --delta 1e-5",
        "privsweep solve batch-size --epsilon 2 --sampling poisson --sigma 1.1 --examples 60000 --epochs 10 --delta 1e-5",
    ),
    "profile": (
        "privsweep profile --sampling poisson --sigma 1.1 --examples 60000 --batch-size 256 --epochs 10 --delta 1e-5",
        "privsweep profile --sampling allocation --sigma 2 --steps 100 --fpr 0.001 --fpr 0.01",
    ),
    "plot": (
        "privsweep plot --sampling poisson,allocation --sigma 1 --steps 100 --delta 1e-5 --over sigma=0.8..2",
        "privsweep plot --sampling none --sigma 1 --delta 1e-5 --tradeoff --out curve.pdf --width text",
    ),
    "compare": (
        "privsweep compare --sigma 1.1 --examples 60000 --batch-size 256 --epochs 10 --delta 1e-5",
        "privsweep compare --sigma 1 --steps 1000 --delta 1e-6 --json",
    ),
    "steps": (
        "privsweep steps --examples 60000 --batch-size 256 --epochs 10",
        "privsweep steps --examples 60000 --batch-size 256 --sigma 1 --delta 1e-6",
    ),
    "labels": (
        "privsweep labels --bag-size 8 --prior uniform",
        'privsweep labels --bag-size 8 --prior "beta(2,30)" --versus-rr 1.0',
    ),
    "audit": (
        "privsweep audit --scores scores.csv --guesses 100 --delta 1e-5",
        'privsweep audit --counts 1000 100 90 --design independent --delta 1e-5 --claim "gaussian(sigma=2)"',
    ),
    "membership": (
        "privsweep membership --epsilon 1 --delta 1e-5 --adjacency add-remove",
        'privsweep membership --law "zipf(1.2)" --records 1000',
    ),
    "ask": (
        "privsweep ask unamplified-epsilon sigma=2 delta=1e-5",
        "privsweep ask poisson-epsilon sigma=1 steps=1000 sampling_probability=0.001 delta=1e-6 --method poisson.certified",
    ),
    "methods": (
        "privsweep methods",
        "privsweep methods poisson-epsilon",
    ),
    "plan": (
        "privsweep plan quickstart",
        'privsweep plan poisson-epsilon "sigma=geometric(0.5,4,10)" steps=1000 sampling_probability=0.01 delta=1e-5',
    ),
    "run": (
        "privsweep run quickstart",
        'privsweep run unamplified-epsilon "sigma=geometric(0.5,4,10)" delta=1e-5,1e-8 --engine serial',
    ),
    "status": (
        "privsweep status",
        "privsweep status quickstart --json",
    ),
    "schema": (
        "privsweep schema",
        "privsweep schema > sweep.schema.json",
    ),
    "lookup": (
        "privsweep lookup quickstart",
        "privsweep lookup unamplified-epsilon sigma=2 delta=1e-5 --explain",
    ),
    "sql": (
        'privsweep sql "select problem, count(*) as points from best group by 1"',
        'privsweep sql "select * from conflicts" --csv',
    ),
    "export": (
        'privsweep export "select sigma, delta, lower, upper from best" --format md',
        'privsweep export "select * from results" --out results.parquet',
    ),
    "verify": (
        "privsweep verify",
        "privsweep verify --recompute 5",
    ),
    "repair": (
        "privsweep repair",
        "privsweep repair --dry-run",
    ),
    "compact": (
        "privsweep compact",
        "privsweep compact && privsweep verify",
    ),
    "gc": (
        "privsweep gc --dry-run",
        "privsweep gc --quarantine-days 30",
    ),
    "report": (
        "privsweep report quickstart",
        "privsweep report quickstart --out quickstart.html",
    ),
    "report sweep": (
        "privsweep report sweep quickstart",
        "privsweep report quickstart --out quickstart.md",
    ),
    "report compare-training": (
        "privsweep report compare-training",
        "privsweep report compare-training --out training.html",
    ),
    "report compare-labels": (
        "privsweep report compare-labels",
        "privsweep report compare-labels --format md",
    ),
    "report compare-audits": (
        "privsweep report compare-audits",
        "privsweep report compare-audits --out audits.html",
    ),
    "report compare-membership": (
        "privsweep report compare-membership",
        "privsweep report compare-membership --json",
    ),
    "report figures": (
        "privsweep run allocation-figure1 && privsweep report figures --figure 1",
        "privsweep report figures --figure 1 --format pdf --out figures",
    ),
    "figures": (
        "privsweep figures membership --figure membership-privacy",
        "privsweep figures membership --figure membership-privacy --format svg --out pictures",
    ),
    "table": (
        "privsweep table show",
        "privsweep table publish --out tables",
    ),
    "table publish": (
        "privsweep table publish",
        "privsweep table publish --out tables",
    ),
    "table show": (
        "privsweep table show",
        "privsweep table show --json",
    ),
    "table import": (
        "privsweep table import",
        "privsweep table import new.parquet --check 5 --store other",
    ),
    "table remove": (
        "privsweep table remove VERSION",
        "privsweep table import --check 0 && privsweep table remove VERSION",
    ),
    "table diff": (
        "privsweep table diff old.parquet new.parquet",
        "privsweep table diff old.parquet new.parquet --json",
    ),
    "page": (
        "privsweep page build",
        "privsweep page build --out public",
    ),
    "page build": (
        "privsweep page build",
        "privsweep page build --out public",
    ),
    "serve": (
        "privsweep serve",
        "privsweep serve --port 8123",
    ),
}
"""Two command lines for each command, by the words of the command."""
