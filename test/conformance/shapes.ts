/** Describes the shapes of answers: exact keys and types, whatever the values. */
import assert from 'node:assert/strict'

/** Throws unless `value` has the shape; `at` is its path in the answer. */
export type Shape = (value: unknown, at: string) => void

/** An object with exactly these fields. */
export function object(fields: Readonly<Record<string, Shape>>): Shape {
  return (value, at) => {
    assert.ok(typeof value === 'object' && value !== null && !Array.isArray(value), `${at} must be an object`)
    const exact = `${at} must have exactly these fields: test/conformance/resource-shapes.ts`
    assert.deepEqual(Object.keys(value).sort(), Object.keys(fields).sort(), exact)
    for (const [name, shape] of Object.entries(fields)) shape((value as Record<string, unknown>)[name], `${at}.${name}`)
  }
}

/** An object that may lack the fields of `optional`. */
export function partial(required: Readonly<Record<string, Shape>>, optional: Readonly<Record<string, Shape>>): Shape {
  return (value, at) => {
    assert.ok(typeof value === 'object' && value !== null, `${at} must be an object`)
    const present = Object.entries(optional).filter(([name]) => Object.hasOwn(value, name))
    object({ ...required, ...Object.fromEntries(present) })(value, at)
  }
}

export function list(item: Shape): Shape {
  return (value, at) => {
    assert.ok(Array.isArray(value), `${at} must be a list, not ${JSON.stringify(value)}`)
    for (const [i, each] of value.entries()) item(each, `${at}[${i}]`)
  }
}

export function map(item: Shape): Shape {
  return (value, at) => {
    assert.ok(typeof value === 'object' && value !== null && !Array.isArray(value), `${at} must be an object`)
    for (const [name, each] of Object.entries(value)) item(each, `${at}[${name}]`)
  }
}

export function nullOr(shape: Shape): Shape {
  return (value, at) => {
    if (value !== null) shape(value, at)
  }
}

export function oneOf(...values: readonly string[]): Shape {
  return (value, at) => assert.ok(values.includes(value as string), `${at} is ${JSON.stringify(value)}`)
}

export const string: Shape = (value, at) => assert.equal(typeof value, 'string', at)
export const boolean: Shape = (value, at) => assert.equal(typeof value, 'boolean', at)
export const nothing: Shape = (value, at) => assert.equal(value, null, at)
export const anything: Shape = () => {}

export const uint32: Shape = (value, at) => {
  assert.ok(Number.isInteger(value) && Number(value) >= 0 && Number(value) < 2 ** 32, `${at} is ${String(value)}`)
}

export const share: Shape = (value, at) => {
  assert.ok(typeof value === 'number' && value >= 0 && value <= 1, `${at} is ${String(value)}`)
}

/** RFC 3339 in UTC, whole seconds. */
export const time: Shape = (value, at) => matches(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)(value, at)

/** D5: a prefix and 27 base62 characters. */
export const id = (...prefixes: readonly string[]): Shape => matches(RegExp(`^(${prefixes.join('|')})[0-9A-Za-z]{27}$`))

/** D6: absolute, and under the path of its kind. */
export const uri = (path: string): Shape => matches(RegExp(`^https?://[^/]+${path.replaceAll(/\{(\w+)\}/g, '\\w+')}$`))

export const ref = (path: string, ...prefixes: readonly string[]): Shape => {
  return object({ id: id(...prefixes), uri: uri(`(${path})/(${prefixes.join('|')})[0-9A-Za-z]{27}`) })
}

function matches(pattern: RegExp): Shape {
  return (value, at) => {
    assert.equal(typeof value, 'string', at)
    assert.match(String(value), pattern, at)
  }
}
