"""The form of a training run: a loader is chosen, never assumed; all texts have the ends of the answer."""

import json
import re
import shlex
import urllib.parse
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

import privsweep as ps
from flows.answers.question import question
from flows.cli.app import run
from flows.printing import exactly, rounded_down, rounded_up
from privcore import find_problem
from tests.flows.page.browser import (
    await_curve,
    call,
    click,
    complaints,
    file_server,
    read,
    requested,
    shown,
    text,
    visit,
    wait,
)

pytestmark = [pytest.mark.sampled(2), pytest.mark.xdist_group("page")]

RUN = {"n": "60000", "batch": "256", "epochs": "10", "noise": "1.1", "delta": "1e-5"}
LOADERS = """
    const { LOADERS, options, read } = await load("run/loaders.js");
    const run = read(given[0]);
    const of = (loader) => ({ key: loader.key, asked: loader.ask(run), options: options(loader, run) });
    return LOADERS.map(of);
"""


def address(page: str, **more: str) -> str:
    return f"{page}#{urllib.parse.urlencode({**RUN, **more})}"


def headline(browser: webdriver.Chrome) -> str:
    read(browser, lambda page: text(page, "run-number").startswith("ε"))
    return text(browser, "run-number")


def digits(browser: webdriver.Chrome) -> tuple[float, float]:
    """Both ends with all digits, from the folded explanation."""
    detail = read(browser, lambda page: page.find_element(By.ID, "why-detail").get_property("textContent"))
    lower, upper = re.findall(r"ε ∈ \[(\S+), (\S+)\]", str(detail))[0]
    return float(lower), float(upper)


def brief(lower: float, upper: float) -> str:
    """Three digits, rounded outwards; one number if the ends are within 0.2 %."""
    if upper <= 1.002 * lower:
        return rounded_up(upper, 3)
    return f"{rounded_down(lower, 3)} – {rounded_up(upper, 3)}"


def test_no_answer_comes_before_a_loader_is_chosen(browser: webdriver.Chrome, page: str) -> None:
    visit(browser, page)
    wait(browser, "#brackets .bar")
    assert text(browser, "run-number") == ""
    assert "this page assumes none" in text(browser, "run-says")
    for name in ("attack-section", "curve-section", "run-tools", "run-why"):
        assert not browser.find_element(By.ID, name).is_displayed(), name
    options = [each.text for each in browser.find_elements(By.CSS_SELECTOR, "#run-loader option")]
    assert options[0] == "choose"
    assert options[-1] == "I do not know"
    browser.find_element(By.CSS_SELECTOR, "#run-loader option[value=poisson]").click()
    assert headline(browser)
    assert complaints(browser) == []


def test_every_loader_asks_the_question_of_the_command(browser: webdriver.Chrome, page: str) -> None:
    visit(browser, page)
    wait(browser, "#brackets .bar")
    for texts in (RUN, {**RUN, "batch": "250"}, {**RUN, "change": "replaced", "epochs": "1"}):
        for loader in call(browser, LOADERS, texts):
            asked, words = loader["asked"], loader["options"]
            if isinstance(asked, str):
                assert loader["key"] == "shuffling-drop-last"
                assert "drops nothing" in asked
                continue
            ours = find_problem(asked["problem"]).from_fields(asked["fields"])
            theirs = question(words).problem
            assert ours == theirs, loader["key"]


@pytest.mark.parametrize("loader", ["poisson", "allocation", "balls-in-bins", "none"])
def test_the_headline_the_bar_the_title_and_the_digits_are_one_bracket(
    browser: webdriver.Chrome, page: str, loader: str
) -> None:
    visit(browser, address(page, loader=loader))
    big = headline(browser)
    wait(browser, "#run-curve svg")
    lower, upper = digits(browser)
    said = brief(lower, upper)
    place = f"#brackets li[data-loader={loader}] b"
    assert read(browser, lambda at: at.find_element(By.CSS_SELECTOR, place).text) == said
    assert re.findall(r"[\d.]+", big) == re.findall(r"[\d.]+", said)
    assert browser.title.endswith(f": ε {said} · privsweep")
    read(browser, lambda at: f"ε {said}" in at.find_element(By.CSS_SELECTOR, "#run-curve output").text)
    (options,) = [each["options"] for each in call(browser, LOADERS, RUN) if each["key"] == loader]
    ours = ps.epsilon(**options)
    assert lower <= ours.upper
    assert ours.lower <= upper
    assert upper <= 1.002 * ours.upper
    assert complaints(browser) == []


def test_a_poisson_accountant_is_refuted_where_it_is_wrong(browser: webdriver.Chrome, page: str) -> None:
    visit(browser, address(page, loader="balls-in-bins"))
    headline(browser)
    read(browser, lambda at: "does not hold: ε is at least 10.3" in text(at, "run-says"))
    visit(browser, address(page, loader="allocation"))
    read(browser, lambda at: "so that number holds" in text(at, "run-says"))


def test_a_link_restores_the_form_and_leads_to_the_answer(browser: webdriver.Chrome, page: str) -> None:
    given = {**RUN, "loader": "balls-in-bins", "noise": "2.5", "over": "epochs", "fpr": "0.1 %"}
    visit(browser, f"{page}#{urllib.parse.urlencode(given)}")
    first = headline(browser)
    for name, value in given.items():
        assert browser.find_element(By.ID, f"run-{name}").get_property("value") == value
    await_curve(browser)
    click(browser, "button[data-copy=Link]")
    link = str(read(browser, lambda at: at.find_element(By.ID, "run-copied").get_property("textContent")))
    visit(browser, link)
    assert headline(browser) == first
    assert "Kept bins, σ 2.5, n 60000, b 256, 10 epochs" in browser.title


def test_the_copies_are_about_the_answer(
    browser: webdriver.Chrome, page: str, capsys: pytest.CaptureFixture[str]
) -> None:
    visit(browser, address(page, loader="poisson"))
    await_curve(browser)
    lower, upper = digits(browser)

    def copied(kind: str) -> str:
        click(browser, f"button[data-copy={kind}]")
        words = {"Python": "import", "Command": "privsweep", "Statement": "Guarantee", "Citation": "@misc"}[
            kind
        ]
        return str(
            read(
                browser,
                lambda at: (
                    (found := str(at.find_element(By.ID, "run-copied").get_property("textContent")))
                    and found.startswith(words)
                    and found
                ),
            )
        )

    assert run([*shlex.split(copied("Command"))[1:], "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["lower"] <= upper
    assert lower <= said["upper"]
    exec(compile(copied("Python"), "<copied>", "exec"), {})
    assert rounded_up(said["upper"]) in capsys.readouterr().out
    assert f"epsilon is at most {rounded_up(upper)} at delta=1e-5" in copied("Statement")
    assert f"[{rounded_down(lower)}, {rounded_up(upper)}]" in copied("Citation")
    assert complaints(browser) == []


def test_the_noise_that_is_found_suffices(browser: webdriver.Chrome, page: str) -> None:
    visit(browser, address(page, loader="allocation", target="2"))
    await_curve(browser)  # nothing moves the button now
    click(browser, "#noise-find-run")
    found = float(re.findall(r"σ (\S+) suffices", wait(browser, "#noise-bracket").text)[0])
    assert ps.ask("allocation-epsilon", sigma=found, steps=234, epochs=10, delta=1e-5).lower <= 2
    click(browser, "#noise-use")
    assert browser.find_element(By.ID, "run-noise").get_property("value") == exactly(found)
    assert read(browser, lambda at: digits(at)[1] <= 2)


@pytest.mark.parametrize("loader", ["poisson", "balls-in-bins"])
def test_the_best_attack_is_that_of_the_profile(browser: webdriver.Chrome, page: str, loader: str) -> None:
    visit(browser, address(page, loader=loader, fpr="0.1 %"))
    headline(browser)
    read(browser, lambda at: "%" in text(at, "attack-says"))
    says = text(browser, "attack-says")
    low, high = ([float(each) / 100 for each in re.findall(r"([\d.]+) %", says)] * 2)[:2]
    (options,) = [each["options"] for each in call(browser, LOADERS, RUN) if each["key"] == loader]
    options.pop("delta")
    rows = ps.profile(fpr=0.001, **options)["profile"]
    (ours,) = [each for each in rows if each["quantity"] == "true_positive_rate"]
    assert low <= ours["upper"]
    assert ours["lower"] <= high * (1 + 1e-9)


@pytest.mark.parametrize(
    ("field", "typed", "said"),
    [
        ("noise", "-1", "Expected the noise multiplier in [0.001, 1000000], got -1."),
        ("noise", "1,1", "Expected the noise multiplier in"),
        ("n", "6e4.5", "Expected examples in {2, ..., 1000000000000}, got 6e4.5."),
        ("batch", "70000", "Expected a batch size of at most the 60000 examples, got 70000."),
        ("delta", "2", "Expected delta in [1e-300, 1), got 2."),
        ("delta", "", "Expected delta in [1e-300, 1), got nothing."),
        ("epochs", "0.5", "Expected epochs in {1, ..., 1000000}, got 0.5."),
        ("noise", "<img src=x onerror=alert(1)>", "got <img src=x onerror=a."),
    ],
)
def test_bad_input_gets_one_sentence(
    browser: webdriver.Chrome, page: str, field: str, typed: str, said: str
) -> None:
    visit(browser, address(page, loader="poisson"))
    headline(browser)
    element = browser.find_element(By.ID, f"run-{field}")
    element.send_keys(Keys.CONTROL, "a")
    element.send_keys(Keys.DELETE, typed)
    assert said in wait(browser, "#run-says .error").text
    assert element.get_attribute("aria-invalid") == "true"
    assert text(browser, "run-number") == ""
    assert shown(browser, "#brackets .bar") == []


def test_who_does_not_know_the_loader_sees_the_worst_of_all(browser: webdriver.Chrome, page: str) -> None:
    visit(browser, address(page, loader="unknown"))
    big = headline(browser)
    assert big.startswith("ε at most")
    most = float(big.split()[-1])
    said = [each.text for each in shown(browser, "#brackets .track b")]
    assert most == max(float(each.split()[-1]) for each in said)
    assert not browser.find_element(By.ID, "attack-section").is_displayed()


def test_the_first_answer_needs_few_small_files(browser: webdriver.Chrome, page: str) -> None:
    browser.execute_cdp_cmd("Network.clearBrowserCache", {})
    visit(browser, "about:blank")
    requested(browser)
    visit(browser, address(page, loader="poisson"))
    headline(browser)
    asked = [each.removeprefix(page) for each in requested(browser) if each.startswith(page)]
    assert len(asked) <= 12
    assert {"start.js", "engine/engine.js"} <= set(asked)
    assert not [each for each in asked if each.startswith(("data/", "catalogue"))]


def test_after_the_first_visit_the_form_works_without_its_server(
    browser: webdriver.Chrome, store: Path, folder: Path
) -> None:
    with file_server(folder / "www" / store.name) as server:
        visit(browser, f"{server}/#loader=poisson&{urllib.parse.urlencode(RUN)}")
        first = headline(browser)
        ready = "return Boolean((await navigator.serviceWorker.getRegistration())?.active);"
        read(browser, lambda at: call(at, ready))
    browser.execute_cdp_cmd("Network.clearBrowserCache", {})
    visit(browser, f"{server}/#loader=poisson&{urllib.parse.urlencode(RUN)}")
    assert headline(browser) == first
    complaints(browser)


@pytest.mark.parametrize(
    "run", [{"noise": "0.2", "epochs": "100"}, {"change": "replaced"}], ids=["wide", "replaced"]
)
def test_nothing_is_said_of_an_accountant_that_prints_another_number(
    browser: webdriver.Chrome, page: str, run: dict[str, str]
) -> None:
    visit(browser, address(page, loader="none", **run))
    headline(browser)
    read(browser, lambda at: "%" in text(at, "attack-says") or "computing" not in text(at, "brackets"))
    assert "accountant" not in text(browser, "run-says")
    assert "accountant" not in text(browser, "brackets-rule")


def test_an_epsilon_of_zero_has_an_answer_and_no_curve(browser: webdriver.Chrome, page: str) -> None:
    visit(browser, address(page, loader="poisson", delta="0.5"))
    assert headline(browser) == "ε at most 0"
    read(browser, lambda at: "%" in text(at, "attack-says"))
    assert not browser.find_element(By.ID, "curve-section").is_displayed()
    assert complaints(browser) == []


def test_a_run_stays_on_its_tab(browser: webdriver.Chrome, page: str) -> None:
    visit(browser, address(page, loader="balls-in-bins", noise="1.31"))
    browser.find_element(By.ID, "run-n").send_keys("0")
    click(browser, "#tab-labels")
    wait(browser, "#fact-chart svg")
    wait(browser, "#content")
    assert "tab=labels" in browser.current_url
    assert "labels" in browser.title
    click(browser, "#tab-run")
    read(browser, lambda at: at.title.startswith("Kept bins, σ 1.31, n 600000"))


def test_a_link_with_an_emptied_field_leaves_it_empty(browser: webdriver.Chrome, page: str) -> None:
    visit(browser, address(page, loader="poisson", delta=""))
    assert "Expected delta in [1e-300, 1), got nothing." in wait(browser, "#run-says .error").text
    visit(browser, f"{page}#loader=poisson")
    assert headline(browser)
    assert browser.find_element(By.ID, "run-delta").get_property("value") == "1e-5"


@pytest.mark.parametrize("loader", ["shuffling-drop-last", "none"])
def test_commands_run_where_nothing_is_dropped(
    browser: webdriver.Chrome, page: str, capsys: pytest.CaptureFixture[str], loader: str
) -> None:
    visit(browser, address(page, loader=loader, batch="6000", noise="3"))
    read(browser, lambda at: shown(at, "#brackets .bar") and "computing" not in text(at, "brackets"))
    click(browser, "button[data-copy=Command]")
    command = read(browser, lambda at: at.find_element(By.ID, "run-copied").text)
    assert run([*shlex.split(str(command))[1:], "--limit-seconds", "0.01", "--json"]) in (0, 4)
    assert "Expected" not in capsys.readouterr().err


def test_noise_that_only_the_command_finds_has_its_command(browser: webdriver.Chrome, page: str) -> None:
    visit(browser, address(page, loader="shuffling-drop-last", target="3"))
    wait(browser, "#curve-start")  # the last part that moves the button
    click(browser, "#noise-find-run")
    said = read(browser, lambda at: text(at, "noise-said"))
    assert "privsweep noise --epsilon 3 --sampling shuffling --examples 60000 --batch-size 256" in said


def test_stop_ends_the_computations_for_all_loaders(browser: webdriver.Chrome, page: str) -> None:
    visit(browser, address(page, delta="1e-300"))
    click(browser, "#run-stop")
    read(browser, lambda at: "computing" not in text(at, "brackets"))
    assert "stopped" in text(browser, "brackets")
    assert text(browser, "run-kind") == ""
    assert complaints(browser) == []
