/** The result of a dry run: what each module would do to the described traffic, and what the visitor would get (D55). */
import type { Static } from 'typebox'
import type { LimitPart } from '../lib/limits/divided-counters.ts'
import type { CountedWindow } from '../lib/limits/sliding-counters.ts'
import { closedObject, nullable } from '../lib/shape/schema.ts'
import { Type } from '../lib/shape/type.ts'
import type { Described } from './described.ts'
import type { EdgeConfig } from './edge-config.ts'

/** The input of a dry run: plain data, so that it can run on another thread. */
export interface ExplainWork {
  readonly config: EdgeConfig
  /** The route to explain; it is an error when the traffic goes to another route. */
  readonly routeId?: string | undefined
  readonly asked: Described
  readonly region: string
  readonly publicHttpsPort: number
  /** Whether error pages have ngrok's number too. */
  readonly ngrokErrorHeader: boolean
  /** What the rate limits have counted so far. */
  readonly counters: readonly CountedWindow[]
  /** The node's part of each rate limit. */
  readonly limitPart: LimitPart
}

const text = (description: string) => Type.String({ description })

const headersView = Type.Record(Type.String(), Type.Array(Type.String()), {
  description: 'Headers by name in lower case; secrets are masked.',
})

const part = closedObject({
  text: text('The part as CEL.'),
  value: Type.Unknown({ description: 'Its value; secrets are masked.' }),
})

const expression = closedObject({
  text: text('The expression as it was written.'),
  value: Type.Unknown({ description: 'Its value; null when it failed.' }),
  error: nullable(text('Why it failed; null when it did not.')),
  parts: Type.Array(part, { description: 'Its parts as far as they were evaluated, from the outside in.' }),
})

const rule = closedObject({
  name: text('Name of the rule.'),
  matched: nullable(Type.Boolean({ description: 'Whether it applied; null when it was not reached.' })),
  expressions: Type.Array(expression, { description: 'Its expressions as far as they were evaluated.' }),
  actions: Type.Array(
    closedObject({
      type: text('Name of the action.'),
      outcome: nullable(text('What it did; null when it was not reached.')),
    }),
    { description: 'Its actions, in order.' },
  ),
})

const meter = closedObject(
  {
    used: Type.Integer({ description: 'Steps that the rules have cost so far.' }),
    total: Type.Integer({ description: 'Steps that they may cost; beyond them nothing passes.' }),
  },
  { description: 'The meter of the request after the rules of this phase; null for other modules.' },
)

const stepPhases = ['accept', 'handshake', 'request', 'upstream', 'response'] as const
export type StepPhase = (typeof stepPhases)[number]

const step = closedObject({
  module: text('Name of the module.'),
  phase: Type.Enum([...stepPhases], {
    description:
      '`accept`: a connection arrived. `handshake`: the edge ends TLS. `request`: a request arrived. `upstream`: the request is about to be forwarded. `response`: the response is on its way back.',
  }),
  outcome: text('What the module did.'),
  rules: Type.Array(rule, { description: 'The rules of a policy, in order; empty for other modules.' }),
  meter: nullable(meter),
})

export const verdicts = ['passes', 'answers', 'refuses', 'closes', 'depends'] as const

const upstream = closedObject({
  method: text('Method of the request as it is forwarded.'),
  url: text('Path and query as they are forwarded.'),
  headers: headersView,
})

export const explanationView = closedObject({
  steps: Type.Array(step, { description: 'What each module did, in the order of execution.' }),
  outcome: closedObject(
    {
      verdict: Type.Enum([...verdicts], {
        description:
          '`passes`: the upstream gets it, and its response goes to the visitor. `answers`: a module answers. `refuses`: the visitor sees an error. `closes`: the connection is closed. `depends`: on the answer of another server, which `fetches` does not give.',
      }),
      text: text('The same in a sentence.'),
      status_code: nullable(Type.Integer({ description: 'Status that the visitor sees; null when there is none.' })),
      error_code: nullable(text('Error that the visitor sees; null when there is none.')),
      headers: headersView,
      body: nullable(text('Body that the visitor sees, cut to 64 KiB; null when there is none or it is compressed.')),
      route_id: nullable(text('The route that matched; null when there is none.')),
      upstream: nullable(upstream),
    },
    { description: 'What happens to the request or connection.' },
  ),
})

export type Explanation = Plain<Static<typeof explanationView>>
export type ExplainedOutcome = Explanation['outcome']
export type ExplainedStep = Explanation['steps'][number]
export type ExplainedMeter = NonNullable<ExplainedStep['meter']>
export type ExplainedRule = ExplainedStep['rules'][number]
export type ExplainedExpression = ExplainedRule['expressions'][number]
export type ShownHeaders = ExplainedOutcome['headers']

type Plain<T> = T extends readonly unknown[]
  ? readonly Plain<T[number]>[]
  : T extends object
    ? { readonly [K in keyof T]: Plain<T[K]> }
    : T
