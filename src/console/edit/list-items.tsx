import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { blankItemOf, type Field } from "./fields.ts";
import { type FieldProps, labelOf } from "./form.ts";

interface Props extends FieldProps {
  /** Draws an item; `name` says which it is. */
  readonly children: (item: Field, name: string) => ComponentChildren;
}

/** A list: its items below each other, each to be moved or removed, and a button for one more. */
export function ListItems({ field, form, children }: Props) {
  const { path, fields } = field;
  const label = labelOf(field, form);
  const { keys, focus, list } = useKeys(fields.length);
  const change = (next: (items: readonly unknown[]) => readonly unknown[]) =>
    form.set(path, (now) => next(Array.isArray(now) ? now : []));
  const move = (index: number, to: number, name: "up" | "down") => {
    change((items) => moved(items, index, to));
    keys.current = moved(keys.current, index, to);
    focus.current = { index: to, name };
  };
  const remove = (index: number) => {
    change((items) => items.filter((_, at) => at !== index));
    keys.current = keys.current.filter((_, at) => at !== index);
    focus.current = { index: Math.min(index, fields.length - 2), name: "remove" };
  };
  return (
    <div class="edit-list" ref={list}>
      {fields.map((item, index) => {
        const name = `${label} ${index + 1}`;
        return (
          <div key={keys.current[index]} class="edit-item" data-index={index}>
            <div
              class="edit-item-value"
              {...(item.fields.length > 0 && { role: "group", "aria-label": name })}
            >
              {children(item, name)}
            </div>
            {fields.length > 1 && (
              <>
                <button
                  type="button"
                  class="quiet"
                  name="up"
                  aria-label={`Move ${name} up`}
                  disabled={index === 0}
                  onClick={() => move(index, index - 1, "up")}
                >
                  ↑
                </button>
                <button
                  type="button"
                  class="quiet"
                  name="down"
                  aria-label={`Move ${name} down`}
                  disabled={index === fields.length - 1}
                  onClick={() => move(index, index + 1, "down")}
                >
                  ↓
                </button>
              </>
            )}
            <button
              type="button"
              class="quiet"
              name="remove"
              aria-label={`Remove ${name}`}
              onClick={() => remove(index)}
            >
              ✕
            </button>
          </div>
        );
      })}
      <button
        type="button"
        name="add"
        aria-label={`Add to ${label}`}
        onClick={() => {
          change((items) => [...items, blankItemOf(field)]);
          focus.current = { index: fields.length, name: "value" };
        }}
      >
        Add
      </button>
    </div>
  );
}

function moved<T>(items: readonly T[], from: number, to: number): readonly T[] {
  const next = [...items];
  next.splice(to, 0, ...next.splice(from, 1));
  return next;
}

/** Keys by which each item keeps its controls when it moves, and the place where the focus goes with it. */
function useKeys(length: number) {
  const keys = useRef<readonly number[]>([]);
  const next = useRef(0);
  const list = useRef<HTMLDivElement>(null);
  const focus = useRef<{ readonly index: number; readonly name: string } | null>(null);
  while (keys.current.length < length) {
    keys.current = [...keys.current, next.current];
    next.current += 1;
  }
  useLayoutEffect(() => {
    const { current: wanted } = focus;
    if (!wanted || !list.current) return;
    focus.current = null;
    const item = list.current.querySelector(`:scope > [data-index="${wanted.index}"]`);
    const control =
      wanted.name === "value"
        ? item?.querySelector<HTMLElement>("input, textarea, select")
        : (item?.querySelector<HTMLElement>(`button[name=${wanted.name}]:enabled`) ??
          item?.querySelector<HTMLElement>("button:enabled"));
    (control ?? list.current.querySelector<HTMLElement>(":scope > button[name=add]"))?.focus();
  });
  return { keys, focus, list };
}
