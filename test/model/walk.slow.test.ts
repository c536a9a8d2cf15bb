/** Random walks in which every move and error code occurs; `npm run prove -- model` sets how many. */
import { test } from "vitest";
import { STEPS } from "./step.ts";
import { patienceMs, walks } from "./walks.ts";

const RUNS = Number(process.env.MODEL_RUNS ?? 60);

test(`${RUNS} walks of up to ${STEPS} commands agree with the model`, { timeout: patienceMs(RUNS) }, () =>
  walks(RUNS),
);
