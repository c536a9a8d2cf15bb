/** The parts of questions that are loaded with the first one. */
import { signal } from "@preact/signals";
import type { ComponentProps } from "preact";
import { lazyFrom } from "../app/lazy-from.tsx";

const load = () => import("./answer-fields.ts");
export const GivenAnswer = lazyFrom(load, (fields) => fields.GivenAnswer, null);
export const SelectQuestion = lazyFrom(load, (fields) => fields.SelectQuestion, null);
export const Several = lazyFrom(load, (fields) => fields.Several, null);
const Forms = lazyFrom(load, (fields) => fields.RequestForms);

/** True once answers outlive the page, and clicks are guarded. Until then, nobody can answer. */
export const isWatched = signal(false);

export const RequestForms = (props: ComponentProps<typeof Forms>) =>
  isWatched.value ? <Forms {...props} /> : <p class="loading">Loading …</p>;
