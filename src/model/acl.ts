/** ACL rules of credentials: what an agent may bind. */
import { BadInput } from '../lib/bad-input.ts'
import { readHostport, readName } from './hostport.ts'

export const MAX_ACL_RULES = 1000
export const MAX_ACL_RULE_BYTES = 1024

/** Checks one rule: `*` or `bind:` and a domain, an address or a label; throws an error whose message can be shown. */
export function checkAclRule(rule: string): void {
  if (rule === '*') return
  if (!rule.startsWith('bind:')) throw new BadInput('must be `*` or start with `bind:`')
  const target = rule.slice('bind:'.length)
  if (target === '*') return
  // §2.3 rule 3: a domain may start with a wildcard; an address has a port.
  if (target.includes('=')) checkLabel(target)
  else if (target.includes(':')) readHostport(target)
  else readName(target)
}

function checkLabel(target: string): void {
  const [key, value, more] = target.split('=')
  if (!key || !value || more !== undefined)
    throw new BadInput('must name a label as `bind:<key>=<value>`; either may be `*`')
  for (const part of [key, value]) {
    if (part !== '*' && part.includes('*')) throw new BadInput('may have `*` only for a whole key or value of a label')
    if (/\s/.test(part)) throw new BadInput('must not contain white space')
  }
}
