/** The columns of a table of resources, chosen from what the API document says they show. */

import type { ResourceKind } from './api-outline.ts'
import type { Column } from './table.tsx'
import { textIn } from './text-in.ts'
import { ResourceLink, textOf, Value } from './value.tsx'

/** The most columns that fit. */
const MOST = 6

/** Too long, or of no use in a row. */
const LEFT_OUT =
  /^(id|uri|token|metadata|body|headers|.*_pem|public_key|certificate|critical_options|extensions|created_at)$/

/** What people look for first. */
const FIRST = ['hostports', 'name', 'domain', 'addr', 'subject_common_name', 'cidr', 'type', 'email', 'public_url']

export function columnsOf({ view, moduleFields }: ResourceKind, listPath: string): Column[] {
  const names = [...(view.fields?.keys() ?? [])].filter((name) => !LEFT_OUT.test(name) && !moduleFields.has(name))
  const chosen = [
    ...FIRST.filter((name) => names.includes(name)),
    ...names.filter((name) => !FIRST.includes(name)),
  ].slice(0, MOST)
  const time = view.fields?.has('created_at') ? ['created_at'] : []
  return [
    {
      title: 'id',
      show: ({ id }) => <ResourceLink path={`${listPath}/${textIn(id)}`} id={textIn(id)} />,
      text: ({ id }) => textIn(id),
    },
    ...[...chosen, ...time].map(
      (name): Column => ({
        title: name.replaceAll('_', ' '),
        show: (row) => <Value value={row[name]} most={60} isInRow />,
        text: (row) => textOf(row, name),
      }),
    ),
  ]
}
