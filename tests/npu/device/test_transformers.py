# SPDX-License-Identifier: Apache-2.0
"""Models of the package transformers, tiny and random: the CPU's loss, gradients and tokens."""

from __future__ import annotations

import copy

import pytest
import torch
from tests.npu.device.marks import marked

transformers = pytest.importorskip(
    "transformers", reason="transformers is not installed: pip install '.[npu-test]'"
)

SIZES = {
    "vocab_size": 99,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
}
GROUPED = SIZES | {"num_key_value_heads": 2, "max_position_embeddings": 64}
GPT2 = {"vocab_size": 99, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}
T5 = {"vocab_size": 99, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4}
IMAGES = {k: v for k, v in SIZES.items() if k != "vocab_size"}
IMAGES |= {"image_size": 16, "patch_size": 4, "num_labels": 5}
MODELS = {
    "BertForMaskedLM": ("BertConfig", SIZES),
    "GPT2LMHeadModel": ("GPT2Config", GPT2 | {"bos_token_id": 0, "eos_token_id": 1}),
    "LlamaForCausalLM": ("LlamaConfig", GROUPED),
    "MixtralForCausalLM": ("MixtralConfig", GROUPED | {"num_local_experts": 4}),
    "Qwen2ForCausalLM": ("Qwen2Config", GROUPED),
    "T5ForConditionalGeneration": ("T5Config", T5 | {"decoder_start_token_id": 0}),
    "ViTForImageClassification": ("ViTConfig", IMAGES),
}


GENERATING = [name for name in MODELS if not name.startswith(("Bert", "ViT"))]
WITHOUT_GROUPED = {
    "MixtralForCausalLM": pytest.mark.skipif(
        torch.__version__.startswith("2.8."),
        reason="transformers 5 calls torch._grouped_mm, which torch 2.8 does not have on the CPU",
    )
}


def pair(name: str):
    """A model of random weights, and its copy on npu."""
    torch.manual_seed(0)
    config, sizes = MODELS[name]
    here = getattr(transformers, name)(getattr(transformers, config)(**sizes)).eval()
    return here, copy.deepcopy(here).npu()


@pytest.mark.parametrize("name", marked(MODELS, **WITHOUT_GROUPED))
def test_loss_and_gradients_are_those_of_the_cpu(name):
    here, there = pair(name)
    if name.startswith("ViT"):
        inputs = {"pixel_values": torch.randn(2, 3, 16, 16), "labels": torch.tensor([1, 3])}
    else:
        tokens = torch.randint(3, 99, (2, 12))
        inputs = {"input_ids": tokens, "labels": tokens}
    want = here(**inputs).loss
    got = there(**{k: v.npu() for k, v in inputs.items()}).loss
    torch.testing.assert_close(got.detach().cpu(), want.detach())
    want.backward()
    got.backward()
    pairs = [
        (p.grad, q.grad.cpu())
        for p, q in zip(here.parameters(), there.parameters(), strict=True)
        if p.grad is not None
    ]
    assert len(pairs) > 10
    # Gradients of biases of keys are nothing but rounding, so the largest of all is the measure.
    largest = max(w.abs().max() for w, _ in pairs)
    error = max((g - w).abs().max() for w, g in pairs) / largest
    assert error < 32 * torch.finfo(torch.float32).eps


@pytest.mark.parametrize("name", marked(GENERATING, **WITHOUT_GROUPED))
def test_generate_gives_the_tokens_of_the_cpu(name):
    here, there = pair(name)
    start = torch.randint(3, 99, (1, 12))
    want = here.generate(start, max_new_tokens=8, do_sample=False)
    got = there.generate(start.npu(), max_new_tokens=8, do_sample=False)
    assert got.cpu().tolist() == want.tolist()


NO_DROPOUT = {"resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0}


def test_trainer_trains_an_epoch_to_the_loss_of_the_cpu(tmp_path):
    pytest.importorskip("accelerate", reason="Trainer needs it: pip install '.[npu-test]'")
    losses = {}
    tokens = torch.randint(3, 99, (32, 12), generator=torch.Generator().manual_seed(1))
    # Without a mask, transformers takes the cumsum of a BOOL tensor, which A2 refuses.
    mask = torch.ones(12, dtype=torch.int64)
    rows = [{"input_ids": row, "attention_mask": mask, "labels": row} for row in tokens]
    for device in ("cpu", "npu"):
        torch.manual_seed(0)
        config = transformers.GPT2Config(**MODELS["GPT2LMHeadModel"][1], **NO_DROPOUT)
        model = transformers.GPT2LMHeadModel(config)
        arguments = transformers.TrainingArguments(
            output_dir=str(tmp_path / device),
            num_train_epochs=1,
            per_device_train_batch_size=4,
            learning_rate=1e-3,
            use_cpu=device == "cpu",
            logging_steps=1,
            save_strategy="no",
            report_to=[],
            seed=0,
        )
        trainer = transformers.Trainer(model=model, args=arguments, train_dataset=rows)
        assert trainer.args.device.type == device
        trainer.train()
        losses[device] = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    assert len(losses["npu"]) == 8
    assert losses["npu"] == pytest.approx(losses["cpu"], abs=2e-4)
