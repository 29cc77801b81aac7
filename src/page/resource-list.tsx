/** A list of resources of one kind. */
import { useMemo } from 'preact/hooks'
import type { FoundKind, ResourceKind } from './api-outline.ts'
import { Freshness, ReadingFault } from './freshness.tsx'
import { HelpText } from './help-text.tsx'
import { inSentence } from './in-sentence.ts'
import { linkTo } from './page-location.ts'
import { type Column, Table } from './table.tsx'
import { textIn } from './text-in.ts'
import { CALM_MS, useRows } from './use-live.ts'
import { ResourceLink, textOf, Value } from './value.tsx'
import { ViewHead } from './view-head.tsx'

export function ResourceList({ kind, listPath }: Pick<FoundKind, 'kind' | 'listPath'>) {
  const live = useRows(listPath, CALM_MS)
  const columns = useMemo(() => columnsOf(kind, listPath), [kind, listPath])
  return (
    <>
      <ViewHead title={kind.title} note={<Freshness reading={live} />}>
        {kind.create && (
          <a class="button primary" href={linkTo(listPath, { new: '' })}>
            New
          </a>
        )}
      </ViewHead>
      <p class="soft">
        <HelpText text={kind.about} />
      </p>
      <ReadingFault reading={live} />
      <Table label={inSentence(kind.title)} live={live} columns={columns} empty="None yet." />
    </>
  )
}

/** The most columns that fit. */
const MOST = 6

/** Too long, or of no use in a row. */
const LEFT_OUT =
  /^(id|uri|token|metadata|body|headers|.*_pem|public_key|certificate|critical_options|extensions|created_at)$/

/** What people look for first. */
const FIRST = ['hostports', 'name', 'domain', 'addr', 'subject_common_name', 'cidr', 'type', 'email', 'public_url']

function columnsOf({ view, moduleFields }: ResourceKind, listPath: string): Column[] {
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
