/** For tests: checks, resolves and compiles a written policy. */
import assert from 'node:assert/strict'
import type { Place } from '../../../model/place.ts'
import type { Phases, RequestContext } from '../../phases.ts'
import { testTools } from '../../testing/test-tools.ts'
import type { ModuleTools } from '../../tools.ts'
import type { Verdict } from '../engine/policy-traffic.ts'
import { policy } from '../index.ts'

export type GivenRule = {
  name?: string
  expressions?: string[]
  actions: { type: string; config?: Record<string, unknown> }[]
}

export function compile(
  lists: { inbound?: GivenRule[]; outbound?: GivenRule[] },
  { place = 'route', tools = {} }: { place?: Place; tools?: Partial<ModuleTools> } = {},
): Phases {
  const filled = (rules: GivenRule[] = []) => rules.map((rule) => ({ name: '', expressions: [], ...rule }))
  const config = { enabled: true, inbound: filled(lists.inbound), outbound: filled(lists.outbound) }
  const where = { place, at: '' }
  const stored = policy.accept?.(config, where) ?? config
  const lookup = {
    ipRules: () => [{ cidr: '192.0.2.0/24', action: 'allow' as const }],
    authority: () => assert.fail(),
    backend: () => assert.fail(),
  }
  assert.ok(policy.resolve && policy.compile)
  return policy.compile(policy.resolve(stored, lookup, place), testTools(tools))
}

/** A rule with one condition and one action. */
export const on = (expression: string, type: string, config: Record<string, unknown> = {}): GivenRule => ({
  expressions: [expression],
  actions: [{ type, config }],
})

export async function ask(phases: Phases, ctx: RequestContext): Promise<Verdict | undefined> {
  return phases.request?.(ctx)
}
