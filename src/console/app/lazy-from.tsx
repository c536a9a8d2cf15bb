/** A part of the page that is loaded when it is first shown, and again if that fails. */
import { useSignal } from "@preact/signals";
import type { ComponentChildren, ComponentType } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { lostSince } from "../data/connection.ts";
import { Problem } from "../ui/problem.tsx";

/** In seconds: how long after each failure it is tried again. When the broker is back, it is tried at once. */
const AGAIN = [1, 3, 10];
const LATER = 30;

export function lazyFrom<Module, Props extends object>(
  load: () => Promise<Module>,
  choose: (module: Module) => ComponentType<Props>,
  meanwhile: ComponentChildren = <p class="loading">Loading …</p>,
): ComponentType<Props> {
  let loaded: ComponentType<Props> | undefined;
  return function Lazy(props: Props) {
    const failures = useSignal(0);
    const round = useSignal(0);
    const lastError = useRef<unknown>(null);
    const Loaded = loaded;
    const isBack = Loaded !== undefined || lostSince.value === null;
    useEffect(() => {
      // As it was rendered: another use may have loaded it since.
      if (Loaded) return;
      let timer: ReturnType<typeof setTimeout> | undefined;
      let isOver = false;
      const attempt = () =>
        loadAgain(load, lastError.current, failures.value).then(
          (module) => {
            loaded = choose(module);
            round.value += 1;
          },
          (error: unknown) => {
            if (isOver) return;
            lastError.current = error;
            timer = setTimeout(attempt, 1000 * (AGAIN[failures.value] ?? LATER));
            failures.value += 1;
          },
        );
      void attempt();
      return () => {
        isOver = true;
        clearTimeout(timer);
      };
    }, [isBack]);
    void round.value;
    if (Loaded) return <Loaded {...props} />;
    return failures.value > 0 ? <Problem error={NOT_LOADED} /> : meanwhile;
  };
}

/** Chromium remembers that an address did not load. Its error names the address; the broker ignores the query. */
function loadAgain<Module>(load: () => Promise<Module>, error: unknown, failures: number): Promise<Module> {
  const [, address] = /(https?:[^\s?]+\.js)/.exec(String(error)) ?? [];
  return address === undefined ? load() : import(`${address}?again=${failures}`);
}

const NOT_LOADED = new Error(
  "A part of the page did not load. It is tried again; you may also reload the page.",
);
