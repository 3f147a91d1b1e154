#!/usr/bin/env python3
"""Small files of torch.save, good and hostile, for tests/hub/test_torch_file.cpp. They are committed; run this again
only when one is added:

    python3 scripts/make_torch_files.py        # writes tests/golden/torch/*.bin

It needs torch, nothing of brisk. The hostile ones would run `touch` on a file if anything executed them.
"""

import collections
import io
import os
import pathlib
import pickle
import subprocess
import zipfile

import torch

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden" / "torch"


def counted(*shape, dtype=torch.float32):
    count = 1
    for length in shape:
        count *= length
    return torch.arange(count).reshape(shape).to(dtype)


def repacked(path, write):
    """The archive with each record passed through write(archive, name, content)."""
    source = zipfile.ZipFile(path)
    records = [(name, source.read(name)) for name in source.namelist()]
    source.close()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, content in records:
            write(archive, name, content)


class Call:
    """Pickles as a call of a function."""

    def __init__(self, function, *arguments):
        self.call = (function, arguments)

    def __reduce__(self):
        return self.call


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(1)

    kinds = dict(f64=torch.float64, f32=torch.float32, f16=torch.float16, bf16=torch.bfloat16, i64=torch.int64,
                 i32=torch.int32, i16=torch.int16, i8=torch.int8, u8=torch.uint8, boolean=torch.bool)
    torch.save({name: counted(2, 3, dtype=kind) for name, kind in kinds.items()}, FOLDER / "types.bin")

    table = counted(4, 6)
    views = collections.OrderedDict(whole=table, again=table, transposed=table.t(), rows=table[1:3], columns=table[:, 1:3],
                                    cube=counted(2, 3, 4).permute(2, 0, 1), single=torch.tensor(7.0),
                                    empty=torch.zeros(0, 5), one_row=table[2:3].t())
    torch.save(views, FOLDER / "views.bin")
    torch.save(views, FOLDER / "protocol4.bin", pickle_protocol=4)

    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    with torch.no_grad():
        model[0].weight.copy_(counted(2, 3))
    torch.save(model.state_dict(), FOLDER / "state_dict.bin")
    torch.save({"weight": model[0].weight, "epoch": 3, "rate": 0.5, "names": ["a", "b"], "shape": torch.Size([2, 3]),
                "large": 1 << 40}, FOLDER / "parameter.bin")
    torch.save({"state_dict": model.state_dict(), "epoch": 3}, FOLDER / "nested.bin")
    torch.save(views, FOLDER / "before_1_6.bin", _use_new_zipfile_serialization=False)

    torch.save({"a": counted(2, 3)}, FOLDER / "zip64.bin")
    zipfile.ZIP64_LIMIT = 0  # so that every size and offset stands in a zip64 part
    repacked(FOLDER / "zip64.bin", lambda archive, name, content: archive.writestr(name, content))
    zipfile.ZIP64_LIMIT = (1 << 31) - 1
    torch.save({"a": counted(2, 3)}, FOLDER / "compressed.bin")
    repacked(FOLDER / "compressed.bin",
             lambda archive, name, content: archive.writestr(name, content, zipfile.ZIP_DEFLATED))

    def hostile(name, content):
        torch.save({"a": counted(2, 3)}, FOLDER / name)
        repacked(FOLDER / name, lambda archive, record, old: archive.writestr(
            record, content if record.endswith("data.pkl") else old))

    command = "touch executed"
    hostile("system.bin", pickle.dumps({"a": Call(os.system, command)}, protocol=2))
    hostile("system4.bin", pickle.dumps({"a": Call(os.system, command)}, protocol=4))
    hostile("popen.bin", pickle.dumps({"a": Call(subprocess.Popen, command)}, protocol=2, fix_imports=False))
    hostile("eval.bin", pickle.dumps({"a": Call(eval, "open('executed', 'w')")}, protocol=2))
    for path in sorted(FOLDER.glob("*.bin")):
        print(f"{path.name}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
