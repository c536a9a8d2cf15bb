/** A part of the page that is loaded when it is first shown, and again if that fails. */
import { effect, useSignal } from "@preact/signals";
import type { ComponentChildren, ComponentType } from "preact";
import { useEffect } from "preact/hooks";
import { lostSince } from "../data/connection.ts";
import { Problem } from "../ui/problem.tsx";

/** In seconds: how long after each failure it is tried again; at once when the broker or the network is back. */
const AGAIN = [1, 3, 10];
const LATER = 30;

type Later<Props> = ComponentType<Props> & {
  /** Loads it before it is shown, so that it is drawn at once. */
  readonly early: () => Promise<void>;
};

export function lazyFrom<Module, Props extends object>(
  load: () => Promise<Module>,
  choose: (module: Module) => ComponentType<Props>,
  meanwhile: ComponentChildren = <p class="loading">Loading …</p>,
): Later<Props> {
  let loaded: ComponentType<Props> | undefined;
  const early = async () => {
    loaded = choose(await load());
  };
  return Object.assign(Lazy, { early });
  function Lazy(props: Props) {
    const isFailing = useSignal(false);
    const round = useSignal(0);
    const Loaded = loaded;
    useEffect(() => {
      // As it was rendered: another use may have loaded it since.
      if (Loaded) return;
      return keepLoading(
        load,
        (module) => {
          loaded = choose(module);
          round.value += 1;
        },
        () => {
          isFailing.value = true;
        },
      );
    }, []);
    void round.value;
    if (Loaded) return <Loaded {...props} />;
    return isFailing.value ? <Problem error={NOT_LOADED} /> : meanwhile;
  }
}

/** Tries until the module is loaded, and then calls `take` once. The returned function ends it. */
export function keepLoading<Module>(
  load: () => Promise<Module>,
  take: (module: Module) => void,
  failed: () => void = () => {},
): () => void {
  let lastError: unknown;
  let failures = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isTrying = false;
  let isOver = false;
  const attempt = async (): Promise<void> => {
    clearTimeout(timer);
    if (isTrying || isOver) return;
    isTrying = true;
    let module: Module | undefined;
    try {
      module = await loadAgain(load, lastError, failures);
    } catch (error) {
      lastError = error;
    }
    isTrying = false;
    if (isOver) return;
    if (module === undefined) {
      timer = setTimeout(attempt, 1000 * (AGAIN[failures] ?? LATER));
      failures += 1;
      return failed();
    }
    stop();
    take(module);
  };
  const unsubscribe = effect(() => {
    void lostSince.value;
    void attempt();
  });
  addEventListener("online", attempt);
  function stop(): void {
    removeEventListener("online", attempt);
    isOver = true;
    clearTimeout(timer);
    unsubscribe();
  }
  return stop;
}

/** Chromium remembers that an address did not load. Its error names the address; the broker ignores the query. */
function loadAgain<Module>(load: () => Promise<Module>, error: unknown, failures: number): Promise<Module> {
  const [, address] = /(https?:[^\s?]+\.js)/.exec(String(error)) ?? [];
  return address === undefined ? load() : import(`${address}?again=${failures}`);
}

const NOT_LOADED = new Error(
  "A part of the page did not load. It is tried again; you may also reload the page.",
);
