import { useSignal } from "@preact/signals";

/** With more items than this, a field finds them by their name. */
const MANY = 20;

/** The items whose name has the text of the field in it, and the field; no field if there are few items. */
export function useSearch<T>(items: readonly T[], what: string, nameOf: (item: T) => string) {
  const text = useSignal("");
  const isMany = items.length > MANY;
  const wanted = isMany ? text.value.trim().toLowerCase() : "";
  const fitting = wanted === "" ? items : items.filter((item) => nameOf(item).includes(wanted));
  const field = isMany && (
    <>
      <input
        type="search"
        aria-label="Find by name"
        placeholder="Find by name"
        value={text.value}
        onInput={({ currentTarget }) => {
          text.value = currentTarget.value;
        }}
      />
      {fitting.length === 0 && <p class="dim">No {what} has this in its name.</p>}
    </>
  );
  return { field, fitting };
}
