/** The parts of questions that are loaded with the first one. */
import { lazyFrom } from "../app/lazy-from.tsx";

const load = () => import("./answer-fields.ts");
export const GivenAnswer = lazyFrom(load, (fields) => fields.GivenAnswer, null);
export const RequestForms = lazyFrom(load, (fields) => fields.RequestForms);
export const SelectQuestion = lazyFrom(load, (fields) => fields.SelectQuestion, null);
export const Several = lazyFrom(load, (fields) => fields.Several, null);
