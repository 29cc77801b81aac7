/** Documents whose texts, at any depth, may hold `${…}`: parsed once, filled in for each request. */
import type { CelValue } from '@bufbuild/cel'
import type { Moment } from './moment.ts'
import type { Template } from './template.ts'

/** Returns a function that returns the document with all its texts filled in. */
export function compileDocument(
  value: unknown,
  template: (text: string) => Template,
  plain: (value: CelValue) => unknown,
): (moment: Moment) => unknown {
  if (typeof value === 'string') {
    if (!value.includes('${')) return () => value
    const compiled = template(value)
    return (moment) => plain(compiled.value(moment))
  }
  if (Array.isArray(value)) {
    const items = value.map((item) => compileDocument(item, template, plain))
    return (moment) => items.map((item) => item(moment))
  }
  if (typeof value === 'object' && value !== null) {
    const fields = Object.entries(value).map(([name, each]) => [name, compileDocument(each, template, plain)] as const)
    return (moment) => Object.fromEntries(fields.map(([name, each]) => [name, each(moment)]))
  }
  return () => value
}
