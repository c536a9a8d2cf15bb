/** Tools that look around: who is there, and how the broker is. Limit: settings of agents are not shown. */
import * as z from "zod";
import { status } from "../../engine/status.ts";
import { presenceSchema } from "../../schema/agent.ts";
import { statusSchema } from "../../schema/status.ts";
import { API_INFO } from "../openapi.ts";
import { type Tool, tool } from "./tool.ts";

const READERS = ["agent", "caller", "approver", "viewer", "operator"] as const;
const MOST = 50;

const foundSchema = z.object({
  name: z.string(),
  description: z.string(),
  skills: z.array(z.object({ id: z.string(), name: z.string(), description: z.string() })),
  paused: z.boolean(),
  presence: presenceSchema,
  waiting: z.int(),
  working: z.int(),
});
type Found = z.infer<typeof foundSchema>;

const lineOf = ({ name, description, skills, presence, paused, waiting, working }: Found): string => {
  const can = skills.map((skill) => skill.name).join(", ");
  const how = `${paused ? "paused, " : ""}${presence.state}, ${waiting} waiting, ${working} working`;
  return `- ${name} (${how})${description === "" ? "" : `: ${description}`}${can === "" ? "" : ` [${can}]`}`;
};

export const lookingTools: readonly Tool[] = [
  tool({
    name: "discover_agents",
    title: "Find agents",
    description:
      "Which agents there are, what they are for, and whether anybody works for them now: online (polls), stale (was there some minutes ago), offline (delegations wait until somebody comes). Up to 50; narrow with query.",
    for: READERS,
    reads: true,
    input: {
      query: z
        .string()
        .max(256)
        .optional()
        .describe("Words that name, description or skills must have, all of them."),
      online_only: z.boolean().default(false),
    },
    output: { agents: z.array(foundSchema), omitted: z.int() },
    async handle({ broker }, { query = "", online_only }) {
      const words = query.toLowerCase().split(/\s+/).filter(Boolean);
      const known = await Promise.all((await broker.agents.names()).map((name) => broker.agents.find(name)));
      const fitting = known
        .filter((agent) => agent !== null)
        .filter(({ name, spec: { description, skills } }) => {
          const said = JSON.stringify([name, description, skills]).toLowerCase();
          return words.every((word) => said.includes(word));
        });
      const agents: Found[] = [];
      let omitted = 0;
      for (const { name, spec, paused } of fitting) {
        if (agents.length === MOST) {
          omitted += 1;
          continue;
        }
        const presence = await broker.presences.of(name);
        if (online_only && presence.state !== "online") continue;
        const { waiting, working } = await broker.agents.counts(name);
        const skills = spec.skills.map(({ id, name: title, description }) => ({
          id,
          name: title,
          description,
        }));
        agents.push({ name, description: spec.description, skills, paused, presence, waiting, working });
      }
      const more = omitted === 0 ? "" : `\n${omitted} more: narrow with query.`;
      const text = agents.length === 0 ? "No agent fits." : agents.map(lineOf).join("\n");
      return { text: `${text}${more}`, data: { agents, omitted } };
    },
  }),
  tool({
    name: "broker_health",
    title: "Broker and token",
    description: "Whether the broker works, its version and time, and which principal your token is.",
    for: READERS,
    reads: true,
    input: {},
    output: statusSchema.shape,
    async handle({ broker, principal }) {
      const data = { version: API_INFO.version, ...(await status(broker, principal)) };
      return {
        text: `The broker works (version ${data.version}, ${data.now}). You are ${data.principal}.`,
        data,
      };
    },
  }),
];
