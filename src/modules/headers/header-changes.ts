/** What `request_headers` and `response_headers` do to headers: remove, then add (D37). */
import type { HeaderList } from '../../lib/http/header-list.ts'
import { compileTemplate, type HeaderTemplate, type TemplateMoment } from '../templates/templates.ts'

export interface HeaderSettings {
  /** Names and values, which may hold `${…}`. Each adds one value to the header of that name. */
  readonly add: readonly (readonly [name: string, value: string])[]
  /** Names, in any case. */
  readonly remove: readonly string[]
}

type HeaderChanges = (headers: HeaderList, moment: TemplateMoment) => void

export function compileHeaderChanges({ add, remove }: HeaderSettings): HeaderChanges {
  const removed = new Set(remove.map((name) => name.toLowerCase()))
  const added = add.map(([name, value]) => [name.toLowerCase(), compileTemplate(value)] as const)
  return (headers, moment) => {
    if (removed.size > 0) headers.removeWhere(({ key }) => removed.has(key))
    for (const [name, template] of added) headers.add(name, render(template, moment))
  }
}

export function render(template: HeaderTemplate, moment: TemplateMoment): string {
  return typeof template === 'string' ? template : template(moment)
}
