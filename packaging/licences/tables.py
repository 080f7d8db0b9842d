"""The tables of README.md beside this file: {heading: [{column: cell}]}."""

import pathlib

HERE = pathlib.Path(__file__).resolve().parent


def read(page=HERE / "README.md"):
    tables, rows, columns = {}, None, None
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            rows, columns = tables.setdefault(line[3:], []), None
        elif line.startswith("|---") or not line.startswith("|"):
            continue
        else:
            cells = [cell.strip().replace("`", "") for cell in line.strip("|").split("|")]
            if columns is None:
                columns = cells
            else:
                rows.append(dict(zip(columns, cells)))
    return {heading: rows for heading, rows in tables.items() if rows}
