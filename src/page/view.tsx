/** Chooses the view for where one is. */
import { kindAt } from './api-outline.ts'
import { ExchangeView } from './exchange-view.tsx'
import { EndpointList, SessionList, TunnelList } from './live-lists.tsx'
import { NewResource } from './new-resource.tsx'
import { Overview } from './overview.tsx'
import { linkTo } from './page-location.ts'
import { usePage } from './page-state.ts'
import { isForAdmins } from './places.ts'
import { PolicyView } from './policy-view.tsx'
import { ResourceList } from './resource-list.tsx'
import { ResourceView } from './resource-view.tsx'
import { TrafficView } from './traffic-view.tsx'
import { useOutline } from './use-live.ts'
import { ViewHead } from './view-head.tsx'

const views: Readonly<Record<string, () => preact.JSX.Element>> = {
  '/': Overview,
  '/endpoints': EndpointList,
  '/tunnels': TunnelList,
  '/tunnel_sessions': SessionList,
  '/traffic': TrafficView,
  '/policy': PolicyView,
}

export function View() {
  const page = usePage()
  const { path, query } = page.location.value
  const isAdmin = page.signedIn.value?.role === 'admin'
  if (!isAdmin && isForAdmins(path)) return <OnlyForAdmins />
  const Chosen = Object.hasOwn(views, path) ? views[path] : undefined
  if (Chosen) return <Chosen />
  const exchange = /^\/(?:traffic|exchanges)\/(\w+)$/.exec(path)?.[1]
  if (exchange !== undefined) return <ExchangeView key={exchange} id={exchange} />
  return <ResourceAt path={path} isNew={query.has('new')} />
}

/** Whoever follows the link of an admin learns why there is nothing to see. */
function OnlyForAdmins() {
  return (
    <>
      <ViewHead title="This is for admins" />
      <p>You are signed in as a member.</p>
    </>
  )
}

function NothingHere() {
  return (
    <>
      <ViewHead title="There is nothing here" />
      <p>
        The address leads nowhere. <a href={linkTo('/')}>The overview</a> is a good place to begin.
      </p>
    </>
  )
}

function ResourceAt({ path, isNew }: { readonly path: string; readonly isNew: boolean }) {
  const outline = useOutline()
  if (!outline) return <ViewHead title="Reading the API …" />
  const found = kindAt(outline, path)
  if (!found || (found.id === '' && !found.kind.canList && !isNew)) return <NothingHere />
  if (found.id !== '') return <ResourceView key={path} found={found} outline={outline} />
  return isNew ? <NewResource key={path} {...found} /> : <ResourceList key={path} {...found} />
}
