/** A part of the page that is loaded when it is first shown. */
import { useSignal } from "@preact/signals";
import type { ComponentChildren, ComponentType } from "preact";
import { useEffect } from "preact/hooks";
import { Problem } from "../ui/problem.tsx";

export function lazyFrom<Module, Props extends object>(
  load: () => Promise<Module>,
  choose: (module: Module) => ComponentType<Props>,
  meanwhile: ComponentChildren = <p class="loading">Loading …</p>,
): ComponentType<Props> {
  let loaded: ComponentType<Props> | undefined;
  return function Lazy(props: Props) {
    const round = useSignal(0);
    const error = useSignal<unknown>(null);
    const Loaded = loaded;
    useEffect(() => {
      // As it was rendered: another use may have loaded it since.
      if (Loaded) return;
      load().then(
        (module) => {
          loaded = choose(module);
          round.value += 1;
        },
        () => {
          error.value = new Error("A part of the page did not load. Reload the page.");
        },
      );
    }, []);
    void round.value;
    if (error.value !== null) return <Problem error={error.value} />;
    return Loaded ? <Loaded {...props} /> : meanwhile;
  };
}
