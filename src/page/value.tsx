/** Shows one value of an API response, of whatever type. */

import type { ListedRow } from './all-rows.ts'
import { isRecord } from './api-caller.ts'
import { apiPath } from './api-path.ts'
import { linkTo } from './page-location.ts'
import { pairTexts } from './pair-text.ts'
import { PlainText } from './plain-text.tsx'
import { textIn } from './text-in.ts'
import { dateTime, fromNow } from './time-text.ts'

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/

/** The id of a resource. */
const ID = /^[a-z]+_[0-9A-Za-z]{27}$/

interface ValueProps {
  readonly value: unknown
  /** How many characters of a text are shown at first. */
  readonly most?: number
  /** In a row of a table, where there is little room. */
  readonly isInRow?: boolean
}

export function Value({ value, most = 80, isInRow = false }: ValueProps) {
  if (value === null || value === undefined || value === '') return <span class="soft">–</span>
  if (typeof value === 'boolean') return <span class={value ? 'is-on' : 'soft'}>{value ? 'yes' : 'no'}</span>
  if (typeof value === 'number') return <>{value.toLocaleString('en')}</>
  if (typeof value === 'string' && isInRow && ID.test(value)) {
    return (
      <span class="id" title={value}>
        {shortId(value)}
      </span>
    )
  }
  if (typeof value === 'string')
    return TIME.test(value) ? <When time={value} /> : <PlainText text={value} most={most} />
  if (Array.isArray(value)) return <List values={value} most={most} />
  if (isReference(value)) return <Reference reference={value} />
  const pairs = pairTexts(value)
  return pairs ? <List values={pairs} most={most} /> : <PlainText text={JSON.stringify(value)} most={most} />
}

function List({ values, most }: { readonly values: readonly unknown[]; readonly most: number }) {
  if (values.length === 0) return <span class="soft">–</span>
  return (
    <span class="values">
      {values.map((each, i) => (
        <span key={i}>
          <Value value={each} most={most} />
        </span>
      ))}
    </span>
  )
}

function When({ time }: { readonly time: string }) {
  const millis = Date.parse(time)
  return (
    <time dateTime={time} title={dateTime(millis)}>
      {fromNow(millis, Date.now())}
    </time>
  )
}

interface ReferenceValue {
  readonly id: string
  readonly uri: string
}

function isReference(value: unknown): value is ReferenceValue {
  return isRecord(value) && typeof value.id === 'string' && typeof value.uri === 'string'
}

function Reference({ reference: { id, uri } }: { readonly reference: ReferenceValue }) {
  const path = apiPath(uri, document.baseURI)
  return path === undefined ? <PlainText text={id} /> : <ResourceLink path={path} id={id} />
}

/** A link to a resource. The middle of its id, which tells people nothing, is left out. */
export function ResourceLink({ path, id }: { readonly path: string; readonly id: string }) {
  return (
    <a href={linkTo(path)} title={id} class="id">
      {shortId(id)}
    </a>
  )
}

/** `tn_2aB…9xYz`. */
export function shortId(id: string): string {
  const [, prefix = '', rest = ''] = /^([a-z]+_)(.*)$/.exec(id) ?? []
  return rest.length > 12 ? `${prefix}…${rest.slice(-6)}` : id
}

/** The text of a field, for searches. */
export function textOf(row: ListedRow, name: string): string {
  return textIn(row[name])
}
