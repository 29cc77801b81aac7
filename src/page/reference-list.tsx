/** Offers the ids of resources that a field may refer to, with their names. */

import { useEffect, useState } from 'preact/hooks'
import { type ListedRow, readAllRows } from './all-rows.ts'
import { usePage } from './page-state.ts'
import { textIn } from './text-in.ts'
import { visibleText } from './visible-text.ts'

/** `id` is that of the `datalist`, which the input refers to. */
export function ReferenceChoices({ id, lists }: { readonly id: string; readonly lists: readonly string[] }) {
  const { api } = usePage()
  const [rows, setRows] = useState<readonly ListedRow[]>([])
  const key = lists.join()
  useEffect(() => {
    let isOver = false
    const read = async () => {
      const outcomes = await Promise.all(key.split(',').map((path) => readAllRows(api, path)))
      if (!isOver) setRows(outcomes.flatMap((outcome) => (outcome.ok ? outcome.value.rows : [])))
    }
    void read()
    return () => {
      isOver = true
    }
  }, [api, key])
  return (
    <datalist id={id}>
      {rows.map((row) => (
        <option key={textIn(row.id)} value={textIn(row.id)} label={visibleText(nameOf(row))} />
      ))}
    </datalist>
  )
}

/** The fields that may name a resource. */
const NAMES = ['name', 'domain', 'addr', 'match', 'hostport', 'public_url', 'subject_common_name', 'cidr', 'address']

/** The name of a resource for people; its id if it has none. */
export function nameOf(row: ListedRow): string {
  for (const field of NAMES) {
    const value = row[field]
    if (typeof value === 'string' && value !== '') return value
  }
  if (Array.isArray(row.hostports) && row.hostports.length > 0) return textIn(row.hostports[0])
  return typeof row.description === 'string' && row.description !== '' ? row.description : textIn(row.id)
}
