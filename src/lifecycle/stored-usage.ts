/** Renders the usage of a delegation from its stored form; lua/lazy/usage.lua has the layout. */
import * as z from "zod";
import { AMOUNTS, type Amounts, type Usage, usageSumSchema } from "../schema/usage.ts";

const amountsSchema = usageSumSchema.omit({ complete: true });
const storedSchema = z.object({
  partial: z.literal(true).optional(),
  attempts: z.array(
    z.object({
      attempt: z.int(),
      fence: z.int(),
      before: amountsSchema,
      now: amountsSchema,
      model: z.string().optional(),
      complete: z.literal(true).optional(),
    }),
  ),
});

/** The sum, with the script's precision. Amounts that neither has are absent. */
function sumOf(...parts: readonly Amounts[]): Amounts {
  const sum: { -readonly [A in keyof Amounts]: number } = {};
  for (const name of AMOUNTS) {
    const given = parts.map((part) => part[name]).filter((amount) => amount !== undefined);
    if (given.length === 0) continue;
    const added = given.reduce((all, amount) => all + amount, 0);
    sum[name] = name === "cost" ? Number(added.toPrecision(12)) : Math.min(added, Number.MAX_SAFE_INTEGER);
  }
  return sum;
}

/** `usage` and `used` are fields of the record; `fence` is the number of its newest lease. */
export function usageOf(usage: string, used: string, fence: number): Usage {
  const { partial = false, attempts } = storedSchema.parse(JSON.parse(usage));
  const { currency, ...amounts } = amountsSchema.parse(JSON.parse(used));
  const last = attempts.at(-1);
  const money = (cost: number | undefined) => (cost === undefined ? {} : { currency });
  return {
    attempts: attempts.map(({ attempt, before, now, model, complete = false }) => {
      const sum = sumOf(before, now);
      return { attempt, ...sum, ...money(sum.cost), ...(model !== undefined && { model }), complete };
    }),
    // A lease after the last report may have used more.
    total: {
      ...amounts,
      ...money(amounts.cost),
      complete: !partial && last?.complete === true && last.fence === fence,
    },
  };
}

export const usageJson = (...stored: Parameters<typeof usageOf>): string =>
  JSON.stringify(usageOf(...stored));
