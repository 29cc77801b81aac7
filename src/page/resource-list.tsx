/** A list of resources of one kind. */
import { useMemo } from 'preact/hooks'
import type { FoundKind } from './api-outline.ts'
import { Freshness, ReadingFault } from './freshness.tsx'
import { HelpText } from './help-text.tsx'
import { inSentence } from './in-sentence.ts'
import { linkTo } from './page-location.ts'
import { columnsOf } from './resource-columns.tsx'
import { Table } from './table.tsx'
import { CALM_MS, useRows } from './use-live.ts'
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
