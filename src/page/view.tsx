/** Chooses the view for where one is. */
import { kindAt } from './api-outline.ts'
import { EndpointList, SessionList, TunnelList } from './live-lists.tsx'
import { NewResource } from './new-resource.tsx'
import { Overview } from './overview.tsx'
import { usePage } from './page-state.ts'
import { ResourceList } from './resource-list.tsx'
import { ResourceView } from './resource-view.tsx'
import { useOutline } from './use-live.ts'
import { ViewHead } from './view-head.tsx'

const views: Readonly<Record<string, () => preact.JSX.Element>> = {
  '/': Overview,
  '/endpoints': EndpointList,
  '/tunnels': TunnelList,
  '/tunnel_sessions': SessionList,
}

export function View() {
  const { path, query } = usePage().location.value
  const Chosen = Object.hasOwn(views, path) ? views[path] : undefined
  if (Chosen) return <Chosen />
  return <ResourceAt path={path} isNew={query.has('new')} />
}

function ResourceAt({ path, isNew }: { readonly path: string; readonly isNew: boolean }) {
  const outline = useOutline()
  if (!outline) return <ViewHead title="Reading the API …" />
  const found = kindAt(outline, path)
  if (!found || (found.id === '' && !found.kind.canList && !isNew)) return <ViewHead title="There is nothing here" />
  if (found.id !== '') return <ResourceView key={path} found={found} outline={outline} />
  return isNew ? <NewResource key={path} {...found} /> : <ResourceList key={path} {...found} />
}
