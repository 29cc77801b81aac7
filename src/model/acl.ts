/** ACL rules of credentials: checks their form, and whether they allow a bind. */
import { BadInput } from '../lib/shape/bad-input.ts'
import { type Hostport, readHostport, readName } from './hostport.ts'

export const MAX_ACL_RULES = 1000
export const MAX_ACL_RULE_BYTES = 1024

/** Checks one rule: `*`, or `bind:` and a domain, an address or a label; throws an error whose message can be shown. */
export function checkAclRule(rule: string): void {
  if (rule === '*') return
  if (!rule.startsWith('bind:')) throw new BadInput('must be `*` or start with `bind:`')
  const target = rule.slice('bind:'.length)
  if (target === '*') return
  const check = { label: checkLabel, address: readHostport, name: readName }[kindOf(target)]
  check(target)
}

/** Whether `acl` restricts nothing: D18, R-5.5. */
export function mayBindAnything(acl: readonly string[]): boolean {
  return acl.length === 0 || acl.includes('*') || acl.includes('bind:*')
}

/** Whether `acl` allows an endpoint with this name, which is normalised and may begin with `*.`. */
export function mayBindName(acl: readonly string[], name: string): boolean {
  return mayBindAnything(acl) || namesIt(acl, name)
}

/** Whether a rule names this exact name or a wildcard above it; rules that allow everything do not count (D66). */
export function namesIt(acl: readonly string[], name: string): boolean {
  return targets(acl).some((target) => {
    if (kindOf(target) !== 'name' || target === '*') return false
    const allowed = readable(() => readName(target))
    // `*.example.com` covers names below it at any depth, and the wildcard itself, but not `example.com`.
    return allowed?.startsWith('*.') ? name.endsWith(allowed.slice(1)) : name === allowed
  })
}

/** Whether `acl` allows a TCP endpoint with this address. */
export function mayBindAddress(acl: readonly string[], { host, port }: Hostport): boolean {
  if (mayBindAnything(acl)) return true
  return targets(acl).some((target) => {
    if (kindOf(target) !== 'address') return false
    const allowed = readable(() => readHostport(target))
    return allowed?.host === host && allowed.port === port
  })
}

/** Whether `acl` allows a tunnel with this label. */
export function mayBindLabel(acl: readonly string[], key: string, value: string): boolean {
  if (mayBindAnything(acl)) return true
  return targets(acl).some((target) => {
    if (kindOf(target) !== 'label') return false
    const [allowedKey, allowedValue] = target.split('=')
    return (allowedKey === '*' || allowedKey === key) && (allowedValue === '*' || allowedValue === value)
  })
}

function targets(acl: readonly string[]): string[] {
  return acl.filter((rule) => rule.startsWith('bind:')).map((rule) => rule.slice('bind:'.length))
}

/** A label has a `=`, an address has a port, and everything else is a name (contract 2.3). */
function kindOf(target: string): 'label' | 'address' | 'name' {
  if (target.includes('=')) return 'label'
  return target.includes(':') ? 'address' : 'name'
}

/** A rule that cannot be read allows nothing. */
function readable<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch (error) {
    if (error instanceof BadInput) return undefined
    throw error
  }
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
