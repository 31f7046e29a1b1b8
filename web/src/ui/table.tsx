// A table that sorts by its headings and shows as many rows as one can read. Rows of which the server sends only a page
// are sorted by the server (`order`).
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

export interface Column<T> {
  name: string;
  cell: (row: T) => ComponentChildren;
  sort?: (row: T) => number | string; // none: can't be sorted by
  number?: boolean; // set to the right
}

const ROWS = 200;

export interface Order {
  name: string; // of the column
  down: boolean;
}

export function Table<T>({ caption, columns, rows, id, first, most = ROWS, order: given }: {
  caption: string;
  columns: Column<T>[];
  rows: readonly T[];
  id: (row: T) => string | number;
  first?: string; // name of the column that it is sorted by at first
  most?: number; // rows at first
  order?: { by: Order; set: (by: Order) => void }; // rows come sorted by it
}) {
  const [own, setOwn] = useState<Order>({ name: first ?? "", down: true });
  const by = given?.by ?? own;
  const setBy = given?.set ?? setOwn;
  const [shown, setShown] = useState(most);
  const column = columns.find((c) => c.name === by.name);
  const sorted = column?.sort && !given ? [...rows].sort(compare(column.sort, by.down)) : rows;
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={caption}>
      <table>
        <caption>{caption}</caption>
        <thead>
          <tr>
            {columns.map((c) => (
              <th key={c.name} scope="col" class={c.number ? "number" : ""} {...(c.name === by.name ? { "aria-sort": by.down ? "descending" : "ascending" } : {})}>
                {c.sort ? (
                  <button class="sort" onClick={() => setBy({ name: c.name, down: c.name === by.name ? !by.down : true })}>
                    {c.name}
                    <span aria-hidden="true">{c.name === by.name ? (by.down ? " ↓" : " ↑") : ""}</span>
                  </button>
                ) : (
                  c.name
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {sorted.slice(0, shown).map((row) => (
            <tr key={id(row)}>
              {columns.map((c) => (
                <td key={c.name} class={c.number ? "number" : ""}>
                  {c.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {sorted.length > shown && (
        <p>
          {shown} of {sorted.length} <button onClick={() => setShown(shown + ROWS)}>Show more</button>
        </p>
      )}
    </div>
  );
}

function compare<T>(key: (row: T) => number | string, down: boolean) {
  return (a: T, b: T) => {
    const x = key(a);
    const y = key(b);
    const way = typeof x === "string" || typeof y === "string" ? String(x).localeCompare(String(y), undefined, { numeric: true }) : x - y;
    return down ? -way : way;
  };
}
