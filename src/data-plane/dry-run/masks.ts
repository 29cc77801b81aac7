/** Masks secrets in an explanation: those of the modules and those in the described request. */
import type { HeaderList } from '../../lib/http/header-list.ts'
import { isSecretName } from '../../lib/log/log-mask.ts'
import type { EdgeConfig } from '../../model/edge-config.ts'
import type { ShownHeaders } from '../../model/explanation.ts'

const MASK = '[secret]'

/** Shorter secrets would match in unrelated words. */
const MIN_LENGTH = 4

/** How deep settings are searched. */
const MAX_DEPTH = 32

/** The secrets in the settings of an edge's modules. */
export function secretsOf({ modules, routes }: EdgeConfig): Set<string> {
  const secrets = new Set<string>()
  const add = (text: string): void => {
    if (text.length >= MIN_LENGTH) secrets.add(text)
  }
  const walk = (value: unknown, name: string, depth: number): void => {
    if (depth > MAX_DEPTH) return
    if (typeof value === 'string') {
      if (name === 'credentials') add(value.slice(value.indexOf(':') + 1))
      if (name === 'credentials' || isSecretName(name)) add(value)
    } else if (Array.isArray(value)) for (const each of value) walk(each, name, depth + 1)
    else if (typeof value === 'object' && value !== null) {
      for (const [key, each] of Object.entries(value)) walk(each, key, depth + 1)
    }
  }
  for (const settings of [modules, ...routes.map((route) => route.modules)]) walk(settings, '', 0)
  return secrets
}

/** The secrets in the headers of a request, each as written and as it may be decoded. */
export function secretsIn(headers: HeaderList): string[] {
  const found: string[] = []
  for (const [name, value] of headers) {
    if (!isSecretName(name)) continue
    found.push(value)
    if (/cookie$/i.test(name)) found.push(...value.split(/; */).map((pair) => pair.replace(/^[^=]*=/, '')))
    // The part after the scheme.
    if (/authorization$/i.test(name)) found.push(value.replace(/^\S+ +/, ''))
    const [, encoded] = /^basic +([\w+/=-]+)$/i.exec(value) ?? []
    if (encoded === undefined) continue
    const decoded = Buffer.from(encoded, 'base64').toString()
    found.push(decoded, decoded.slice(decoded.indexOf(':') + 1))
  }
  return found.filter((text) => text.length >= MIN_LENGTH)
}

/** Returns a function that copies a value with a mask in place of each secret. */
export function masking(secrets: ReadonlySet<string>): <T>(value: T) => T {
  // The longest first: one may contain another.
  const sorted = [...secrets].sort((a, b) => b.length - a.length)
  const text = (given: string): string => {
    let masked = given
    for (const secret of sorted) if (masked.includes(secret)) masked = masked.replaceAll(secret, MASK)
    return masked
  }
  const walk = (value: unknown): unknown => {
    if (typeof value === 'string') return text(value)
    if (Array.isArray(value)) return value.map(walk)
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, walk(each)]))
  }
  return <T>(value: T): T => walk(value) as T // the same shape, with other texts
}

/** Headers by name, without the values of those that are secret by name. */
export function shownHeaders(headers: HeaderList): ShownHeaders {
  const shown: Record<string, string[]> = {}
  for (const [name, value] of headers) {
    const key = name.toLowerCase()
    const values = Object.hasOwn(shown, key) ? (shown[key] ?? []) : []
    shown[key] = [...values, isSecretName(key) ? MASK : value]
  }
  return shown
}
