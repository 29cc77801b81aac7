/** Finds the resources that a policy names. */

import type { Mention } from '../module.ts'
import { listPath, type Policy } from './engine/policy-form.ts'
import { directions } from './engine/policy-phases.ts'

/** The IP policies that `restrict-ips` actions name, and where. */
export function policyMentions(policy: Policy): Mention[] {
  return directions.flatMap((direction) =>
    (policy[direction] ?? []).flatMap(({ actions }, i) =>
      actions.flatMap(({ type, config }, j) => {
        const ids = type === 'restrict-ips' ? config?.ip_policies : undefined
        if (!Array.isArray(ids)) return []
        const at = `${listPath(policy, direction)}[${i}].actions[${j}].config.ip_policies`
        return ids.map((id, k) => ({ field: `${at}[${k}]`, id: String(id), kinds: ['ip_policy'] }))
      }),
    ),
  )
}
