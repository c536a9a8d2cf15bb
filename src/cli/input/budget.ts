/** Reads `--budget`: `tokens=200000,cost=2USD,time=30m,attempts=5`. */
import { InvalidArgumentError } from "commander";
import { type Budget, budgetSchema } from "../../schema/budget.ts";
import { issuesOf, readAs } from "../../schema/issues.ts";
import { duration } from "./duration.ts";

const NAMES = "tokens, cost, time and attempts";

function amounts(name: string, value: string): Budget {
  switch (name) {
    case "tokens":
      return { tokens: Number(value) };
    case "attempts":
      return { attempts: Number(value) };
    case "time":
      return { seconds: duration(value) };
    case "cost": {
      const [, cost, currency] = /^([0-9.]+) ?([A-Za-z]{3})$/.exec(value) ?? [];
      if (cost === undefined || currency === undefined)
        throw new InvalidArgumentError("A cost is a number and a currency, for example cost=2.50USD.");
      return { cost: Number(cost), currency: currency.toUpperCase() };
    }
    default:
      throw new InvalidArgumentError(`'${name}' is no amount of a budget: they are ${NAMES}.`);
  }
}

/** Of a day or a month: tokens and a cost. */
export function periodBudget(text: string): Pick<Budget, "tokens" | "cost" | "currency"> {
  const { seconds, attempts, ...rest } = budget(text);
  if (seconds === undefined && attempts === undefined) return rest;
  throw new InvalidArgumentError("A day or a month has a budget of tokens and cost only.");
}

export function budget(text: string): Budget {
  const given = text.split(",").map((one) => {
    const [name = "", value = ""] = one.split("=").map((part) => part.trim());
    return amounts(name, value);
  });
  const read = readAs(budgetSchema, Object.assign({}, ...given));
  if (read.success) return read.data;
  throw new InvalidArgumentError(
    `The budget does not fit: ${issuesOf(read.error, { whole: "budget" }).text}.`,
  );
}
