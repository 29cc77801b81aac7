/** Serves hostile expressions at an edge and visits it: each runs inside a server that measures its own turns. */
import { ask } from '../e2e/edges/visitor.ts'
import type { DocumentsFuzz, Effect } from './documents.ts'

/** How often to check whether a change is in force, and the pause between two checks, in milliseconds. */
const LOOKS = 200
const PAUSE_MS = 25

const BUDGET_SPENT = 'ERR_POLICY_ANSWER_BUDGET_SPENT'

/** Stores an expression, and visits the edge unless it is refused; returns its effect. */
export async function serveExpression(fuzz: DocumentsFuzz, expression: string, number: number): Promise<Effect> {
  const seen = `n${number}`
  // The rule with the expression comes last and stops no visitor: the answer shows that the change is in force.
  const body = {
    inbound: [{ actions: [{ type: 'custom-response', config: { body: 'here' } }] }],
    outbound: [
      { actions: [{ type: 'add-headers', config: { headers: { 'x-seen': seen } } }] },
      { expressions: [expression], actions: [{ type: 'log', config: { metadata: { a: '1' } } }] },
    ],
  }
  const sent = await fuzz.send({ what: expression, to: 'route', at: 'policy', body })
  if (!sent.outcome.startsWith('200')) return sent
  for (let i = 0; i < LOOKS; i++) {
    const { headers, status } = await ask(fuzz.edgeEntry, { headers: visitor })
    // An expression that spends the budget has the answer refused (D102), with the header in it.
    if (headers['x-seen'] === seen || headers['postern-error-code'] === BUDGET_SPENT) {
      const turn = await fuzz.longest()
      return { ...(turn.cpuMs > sent.cpuMs ? turn : sent), document: expression, outcome: `served ${status}` }
    }
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
  }
  throw new Error(`never in force: ${expression}`)
}

/** Nearly as much as a visitor may send. */
const visitor = {
  'x-long': 'a'.repeat(8000),
  cookie: Array.from({ length: 100 }, (_, i) => `c${i}=${i}`).join('; '),
  ...Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`x-${i}`, 'ab'.repeat(40)])),
}
