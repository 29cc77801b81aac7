/** Finds the resources that a policy names. */
import type { ModuleConfig } from '../module.ts'
import type { Policy } from './form.ts'
import { directions } from './phases.ts'

/** The ids of the IP policies that `restrict-ips` actions name, each once. */
export function policyReferences(config: ModuleConfig): string[] {
  // Asked of configurations that were accepted.
  const policy = config as Policy
  const rules = directions.flatMap((direction) => policy[direction] ?? [])
  const ids = rules
    .flatMap((rule) => rule.actions)
    .flatMap(({ type, config }) => {
      const named = type === 'restrict-ips' ? config?.ip_policies : undefined
      return Array.isArray(named) ? named.map(String) : []
    })
  return [...new Set(ids)]
}
