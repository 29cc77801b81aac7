/** Chooses the view for the current location. */
import { kindAt } from './api-outline.ts'
import { ExchangeView } from './exchange-view.tsx'
import { EndpointList, SessionList, TunnelList } from './live-lists.tsx'
import { isForAdmins } from './menu.ts'
import { NewResource } from './new-resource.tsx'
import { Overview } from './overview.tsx'
import { linkTo } from './page-location.ts'
import { usePage } from './page-state.ts'
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

/** Tells members who follow a link of an admin why there is nothing to see. */
function OnlyForAdmins() {
  return (
    <>
      <ViewHead title="Admins only" />
      <p>You are signed in as a member. Only admins can see this page.</p>
    </>
  )
}

function NothingHere() {
  return (
    <>
      <ViewHead title="Page not found" />
      <p>
        There is nothing at this address. Go to <a href={linkTo('/')}>the overview</a>.
      </p>
    </>
  )
}

function ResourceAt({ path, isNew }: { readonly path: string; readonly isNew: boolean }) {
  const outline = useOutline()
  if (!outline) return <ViewHead title="Loading …" />
  const found = kindAt(outline, path)
  if (!found || (found.id === '' && !found.kind.canList && !isNew)) return <NothingHere />
  if (found.id !== '') return <ResourceView key={path} found={found} outline={outline} />
  return isNew ? <NewResource key={path} {...found} /> : <ResourceList key={path} {...found} />
}
