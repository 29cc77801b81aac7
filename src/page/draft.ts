/** A form that is being filled in, as plain JSON; undefined fields are left out. */
import { isRecord } from './api-caller.ts'
import type { FormSchema } from './form-schema.ts'

export type Draft = Readonly<Record<string, unknown>>

/** Fills a form from a resource. References are shown as objects, and sent as ids under another name. */
export function draftOf(form: FormSchema, shown: unknown): Draft {
  const view = isRecord(shown) ? shown : {}
  const fields = [...(form.fields ?? [])].map(([name, field]) => [name, fillField(field, shownAs(view, name))] as const)
  return Object.fromEntries(fields.filter(([, value]) => value !== undefined))
}

/** `backend_id` is shown as `backend`, and `ip_policy_ids` as `ip_policies`. */
function shownAs(view: Draft, name: string): unknown {
  if (Object.hasOwn(view, name)) return view[name]
  const one = /^(.+)_id$/.exec(name)?.[1]
  if (one !== undefined) return view[one]
  const many = /^(.+)_ids$/.exec(name)?.[1]
  return many === undefined ? undefined : view[many.endsWith('y') ? `${many.slice(0, -1)}ies` : `${many}s`]
}

function fillField(field: FormSchema, value: unknown): unknown {
  if (value === null || value === undefined) return undefined
  if (field.type === 'string' && isRecord(value)) return value.id
  if (field.type === 'array' && Array.isArray(value)) {
    return field.entries ? value.map((each) => fillField(field.entries ?? field, each)) : value
  }
  return field.type === 'object' && field.fields ? draftOf(field, value) : value
}

/** A new entry of a list or map. */
export function emptyDraft({ type, words, default: given }: FormSchema): unknown {
  if (given !== undefined) return given
  switch (type) {
    case 'object':
      return {}
    case 'array':
      return []
    case 'boolean':
      return false
    case 'integer':
    case 'number':
      return 0
    case 'string':
      return words?.[0] ?? ''
    case undefined:
      return ''
  }
}

/** The fields of `after` that differ from `before`; one that was emptied is sent as empty, so that it is cleared. */
export function changesIn(before: Draft, after: Draft): Draft {
  const names = new Set([...Object.keys(before), ...Object.keys(after)])
  const changed = [...names].filter((name) => JSON.stringify(before[name]) !== JSON.stringify(after[name]))
  return Object.fromEntries(changed.map((name) => [name, after[name] ?? clearValue(before[name])]))
}

function clearValue(value: unknown): unknown {
  if (typeof value === 'string') return ''
  if (Array.isArray(value)) return []
  return isRecord(value) ? {} : null
}

/** The path of the field that a refusal is about. Some name it only in their sentence, as the first field in backticks. */
export function faultField(
  { field, text }: { readonly field: string; readonly text: string },
  form: FormSchema,
): string {
  if (field !== '') return field
  const named = [...text.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name)
  return named.find((name) => form.fields?.has(/^\w*/.exec(name)?.[0] ?? '')) ?? ''
}

/** Whether a fault is about the field at `path`, or about something in it that has no field of its own. */
export function isFaultAt(field: string, path: string, isLeaf: boolean): boolean {
  if (field === path) return true
  return isLeaf && field.startsWith(path) && /^[.[]/.test(field.slice(path.length))
}
