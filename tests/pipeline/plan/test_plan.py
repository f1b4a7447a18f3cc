"""Plans are counted on the real models and agree with published trainings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pipeline.decoding.plan import sent_bytes
from pipeline.ensembles import planned_ensembles
from pipeline.errors import DataError
from pipeline.plan.costs import ModelCosts, model_costs
from pipeline.plan.hardware import ACCELERATORS, USABLE_SHARE, Hardware, accelerator
from pipeline.plan.sizes import baseline_size, set_sizes, target_share
from pipeline.plan.table import plan_text
from pipeline.plan.work import PART_START_SECONDS, Work, all_work, training_flops
from pipeline.run.settings import PipelineConfig, plain
from tests.composed_settings import composed_settings, own_task

BIG = ModelCosts(217_317_376, 150_994_944.0, 283_983_872.0)
SPEECH = ModelCosts(315_188_520, 117.3e6, 273.3e6)
CORE = Hardware("this_machine", 4e10, 4e10, 16e9, float("inf"), 0.0, "one core")


def _work(
    settings: PipelineConfig, costs: ModelCosts, vocab_size: int, hardware: Hardware
) -> dict[str, Work]:
    sizes, _ = set_sizes(settings)
    share = target_share(settings, baseline_size(settings, sizes))
    work = all_work(settings, costs, vocab_size, sizes, share, hardware)
    return {stage.stage: stage for stage in work}


def test_parameters_and_flops_are_counted_on_the_model() -> None:
    model = composed_settings().model
    small = model_costs(model.architecture, plain(model.settings), 500, 6, 5)
    large = model_costs(model.architecture, plain(model.settings), 600, 6, 5)
    width = 128
    assert large.parameters - small.parameters == 100 * width
    assert large.decoder_flops - small.decoder_flops == pytest.approx(2 * 100 * width)
    assert large.encoder_flops == small.encoder_flops


def test_speech_is_counted_by_frames() -> None:
    model = composed_settings("task=asr").model
    costs = model_costs(model.architecture, plain(model.settings), 122, 100, 8, 40)
    assert costs.parameters > 200_000
    assert 0 < costs.encoder_flops < costs.decoder_flops


def test_usable_shares_agree_with_published_trainings() -> None:
    forward = BIG.encoder_flops + BIG.decoder_flops
    for precision, tokens_per_second, peak in (
        ("fp16", 186_442, 125e12),
        ("fp32", 53_641, 15.7e12),
    ):
        share = 3 * forward * tokens_per_second / 8 / peak
        assert USABLE_SHARE["translation", precision] == pytest.approx(share, rel=0.02)
    settings = composed_settings("experiment=paper", "task=asr", "io.root=nowhere")
    sizes, _ = set_sizes(settings)
    flops = training_flops(settings, SPEECH, target_share(settings, sizes["librispeech"]))
    share = flops / (8 * 8 * 86_400) / 15.7e12  # 8 days on 8 V100
    assert USABLE_SHARE["speech", "fp32"] == pytest.approx(share, rel=0.05)


def test_translation_of_the_paper_takes_hundreds_of_gpu_hours() -> None:
    settings = composed_settings("experiment=paper", "io.root=nowhere")
    hardware = accelerator("v100", "translation", settings.train.precision, settings.decode.dtype)
    work = _work(settings, BIG, 40_000, hardware)
    hours = sum(work["train"].part_seconds) / 3600
    assert len(work["train"].part_seconds) == 10
    assert 600 < hours < 1200
    assert work["train"].wall_seconds(8) == pytest.approx(hours * 3600 / 8)
    assert work["train"].wall_seconds(80) == pytest.approx(hours * 3600 / 80)
    assert work["decode"].memory_bytes > 10 * BIG.parameters * 4
    cheap = composed_settings("experiment=paper/checkpoint", "io.root=nowhere")
    assert len(_work(cheap, BIG, 40_000, hardware)["train"].part_seconds) == 1


@pytest.mark.parametrize(
    ("change", "grows"),
    [
        ("train.updates=3200", "train"),
        ("ensemble.seeds=[1,2,3,4,5,6,7,8]", "train"),
        ("ensemble.seeds=[1,2,3,4,5,6,7,8]", "decode"),
        ("decode.beam=10", "decode"),
        ("data.copies={source: 0.2, target: 0.2, third: 0}", "prepare"),
        ("metrics.resamples=2000", "metrics"),
        ("uncertainty.temperature=[1,2,5,10,20,50]", "uncertainty"),
    ],
)
def test_costs_follow_the_settings(change: str, grows: str) -> None:
    costs = ModelCosts(976_256, 524_288.0, 1_423_872.0)
    before = _work(composed_settings("io.root=nowhere"), costs, 4000, CORE)
    after = _work(composed_settings("io.root=nowhere", change), costs, 4000, CORE)
    assert sum(after[grows].part_seconds) > 1.3 * sum(before[grows].part_seconds)


def test_planned_ensembles_have_the_configured_members() -> None:
    speech = composed_settings("experiment=paper", "task=asr")
    planned = planned_ensembles(speech.ensemble, speech.train)
    assert [len(ensemble.members) for ensemble in planned.main] == [6]
    assert [len(ensemble.members) for ensemble in planned.further] == [6] * 6
    settings = composed_settings("ensemble=mc_dropout")
    (dropout,) = planned_ensembles(settings.ensemble, settings.train).main
    assert len(dropout.members) == 5


@pytest.mark.parametrize(
    ("kind", "searching"),
    [
        ("checkpoint", "seed_1.update_00001600"),
        ("checkpoint_average", "seed_1"),
        ("mc_dropout", "mc_dropout_5"),
        ("imported", "imported_2"),
    ],
)
def test_searching_members_can_be_chosen_in_every_kind(kind: str, searching: str) -> None:
    settings = composed_settings(
        *("io.root=nowhere", "experiment=demo", "ensemble.seeds=[1]", f"ensemble={kind}"),
        *(["ensemble.settings.checkpoints=[a.pt,b.pt]"] if kind == "imported" else []),
        f"decode.search_members=[{searching}]",
    )
    work = _work(settings, ModelCosts(976_256, 524_288.0, 1_423_872.0), 4000, CORE)
    assert work["decode"].part_seconds


def test_the_text_says_what_fits_and_how_to_submit_it() -> None:
    settings = composed_settings("experiment=paper", "io.root=nowhere")
    sizes, from_prepared = set_sizes(settings)
    text: dict[str, str] = {}
    for name in ACCELERATORS:
        hardware = accelerator(name, "translation", "fp16", "float32")
        work = all_work(settings, BIG, 40_000, sizes, 1.0, hardware)
        text[name] = plan_text(
            settings,
            BIG,
            work,
            hardware,
            8,
            overrides=["decode.beam=3", "ensemble.seeds=[1, 2]"],
            from_prepared=from_prepared,
        )
    assert "217,317,376 parameters" in text["v100"]
    assert "hydra/launcher=slurm" in text["v100"]
    assert "array of 10" in text["v100"]
    assert "stages.decode decode.beam=3 'ensemble.seeds=[1, 2]' hydra/" in text["v100"]
    assert "Decoding is assumed" in text["v100"]
    assert "decode fits" in text["h100"]
    small: Any = Hardware("v100", 1e12, 1e12, 8e9, 9e11, 0.01, "a smaller one")
    work = all_work(settings, BIG, 40_000, sizes, 1.0, small)
    tight = plan_text(settings, BIG, work, small, 8, overrides=[], from_prepared=False)
    assert "decode does not fit" in tight
    assert "decode.search_members" in tight


@pytest.mark.parametrize(
    ("parts_per_job", "n_shard", "arrays", "minutes"),
    [(4, 0, "3", 60), (1, 2, "20, then of 10", 15), (4, 2, "20, then of 3", 15)],
)
def test_job_arrays_follow_the_settings(
    parts_per_job: int, n_shard: int, arrays: str, minutes: int
) -> None:
    """With shards, the first array has one job per shard and the second one joins them."""
    settings = composed_settings("io.root=nowhere", f"decode.parts_per_job={parts_per_job}")
    seconds = 1202.0 if n_shard else 600.0
    work = [Work("decode", (seconds,) * 10, 0, 1e9, on_device=True, part_shards=(n_shard,) * 10)]
    text = plan_text(settings, BIG, work, CORE, 1, overrides=[], from_prepared=False)
    assert f"array of {arrays}\n" in text
    assert f"timeout_min={minutes} " in text


def test_shards_cost_more_in_total_and_finish_sooner() -> None:
    costs = ModelCosts(976_256, 524_288.0, 1_423_872.0)
    common = ("io.root=nowhere", "decode.part_sentences=100")
    unsharded, four = (
        _work(composed_settings(*common, f"decode.shards={shards}"), costs, 4000, CORE)["decode"]
        for shards in (1, 4)
    )
    n_part = len(unsharded.part_seconds)
    assert unsharded.part_shards == (0,) * n_part
    assert set(four.part_shards) == {4}
    more = sum(four.part_seconds) - sum(unsharded.part_seconds)
    assert more == pytest.approx(4 * PART_START_SECONDS * n_part)
    assert len(four.shard_seconds()) == 4 * n_part
    assert four.whole_seconds() == [PART_START_SECONDS] * n_part
    assert four.wall_seconds(10**6) < unsharded.wall_seconds(10**6)
    spent = sum(four.shard_seconds()) + sum(four.whole_seconds())
    assert spent == pytest.approx(sum(four.part_seconds))


def test_imported_models_are_not_trained() -> None:
    settings = composed_settings(
        *("experiment=paper", "io.root=nowhere", "ensemble=imported", "data/units=imported"),
        *("ensemble.settings.checkpoints=[a,b]", "data.units.codes=a"),
        *("data.units.source_dictionary=a", "data.units.target_dictionary=b"),
    )
    hardware = accelerator("v100", "translation", "fp16", "float32")
    work = _work(settings, BIG, 40_000, hardware)
    assert work["train"].part_seconds == ()
    assert sum(work["prepare"].part_seconds) < 60
    assert sum(work["decode"].part_seconds) > 0
    text = plan_text(
        settings, BIG, [*work.values()], hardware, 8, overrides=[], from_prepared=False
    )
    assert "stages.train" not in text
    assert "stages.decode" in text


def test_the_usable_share_has_a_source_and_can_be_set() -> None:
    published = accelerator("v100", "translation", "fp16", "float16")
    own = accelerator("v100", "translation", "fp16", "float16", 0.5)
    assert own.train_flops == pytest.approx(0.5 * 125e12)
    assert own.train_flops / published.train_flops == pytest.approx(0.5 / 0.243)
    settings = composed_settings("experiment=paper", "io.root=nowhere", "plan.usable_share=0.5")
    assert settings.plan.usable_share == 0.5
    for hardware, words in ((published, "that NVIDIA publishes"), (own, "0.5 of its peak")):
        work = list(_work(settings, BIG, 40_000, hardware).values())
        text = plan_text(settings, BIG, work, hardware, 8, overrides=[], from_prepared=False)
        assert words in text


def test_subsets_are_only_decoded_and_members_only_evaluated() -> None:
    costs = ModelCosts(976_256, 524_288.0, 1_423_872.0)
    works = [
        _work(composed_settings("io.root=nowhere", "decode.also=[]", *more), costs, 4000, CORE)
        for more in (
            ["decode.subsets_per_size=0"],
            ["decode.subsets_per_size=5"],
            ["decode.subsets_per_size=0", "decode.also=[members]"],
            ["decode.subsets_per_size=0", "ensemble.seeds=[1]"],
        )
    ]
    without, subsets, members, one_member = works
    for stage in ("uncertainty", "metrics"):
        assert subsets[stage] == without[stage]
        assert sum(one_member[stage].part_seconds) > 0
    assert members["uncertainty"] == without["uncertainty"]
    assert members["metrics"].part_seconds > without["metrics"].part_seconds


@pytest.mark.parametrize("change", ["decode.search_members=[seed_1]", "decode.hypotheses=a.h5"])
def test_fewer_loaded_members_need_less_memory(change: str) -> None:
    device = Hardware("v100", 1e12, 1e12, 3e9, 9e11, 0.01, "a smaller one")
    common = (
        "io.root=nowhere",
        "experiment=smoke",
        "ensemble.seeds=[1,2,3,4]",
        "decode.batch_sentences=1",
    )
    verdicts = []
    for more in ([], [change]):
        settings = composed_settings(*common, *more)
        work = list(_work(settings, BIG, 40_000, device).values())
        text = plan_text(settings, BIG, work, device, 8, overrides=[], from_prepared=False)
        verdicts.append("decode does not fit" in text)
    assert verdicts == [True, False]


def test_speech_sets_have_at_most_the_configured_sentences() -> None:
    own = ("task=asr", "io.root=nowhere", "experiment=paper", "data.test_sentences=7")
    assert {size.sentences for size in set_sizes(composed_settings(*own))[0].values()} == {7}


def test_an_accelerator_moves_logits_in_its_memory_and_sends_only_columns() -> None:
    settings = composed_settings("experiment=paper", "io.root=nowhere")
    v100 = accelerator("v100", "translation", "fp16", "float32")
    endless = replace(v100, bytes_per_second=1e30, host_bytes_per_second=1e30, step_seconds=0.0)
    in_memory, sent = (
        sum(_work(settings, BIG, 40_000, hardware)["decode"].part_seconds)
        - sum(_work(settings, BIG, 40_000, endless)["decode"].part_seconds)
        for hardware in (
            replace(endless, bytes_per_second=v100.bytes_per_second),
            replace(endless, host_bytes_per_second=v100.host_bytes_per_second),
        )
    )
    assert 0 < sent < 0.001 * in_memory
    # 320 prefixes of ten members: 45 kB instead of half a gigabyte.
    assert 320 * sent_bytes(10, "beam") == 320 * (25 * 4 + 2 * 20) < 320 * 10 * 40_000 * 4 / 10_000


@pytest.mark.parametrize("task", ["nmt_ende", "asr"])
def test_own_task_is_planned_and_the_plan_says_what_it_assumes(task: str) -> None:
    settings = own_task(f"task={task}", "io.root=nowhere")
    work = [*_work(settings, BIG, 40_000, CORE).values()]
    text = plan_text(settings, BIG, work, CORE, 2, overrides=[], from_prepared=False)
    assert "The paper has no task mine: where data.* does not give the size" in text
    of_paper = plan_text(
        composed_settings(f"task={task}"), BIG, work, CORE, 2, overrides=[], from_prepared=False
    )
    assert "The paper has no task" not in of_paper


def test_baseline_that_could_not_be_prepared_is_named() -> None:
    with pytest.raises(DataError, match=r"task\.test_sets\.mine: could not be prepared"):
        baseline_size(own_task(), {})
