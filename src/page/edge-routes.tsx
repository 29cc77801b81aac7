/** The routes of an HTTPS edge, with the modules that are on. */

import type { ListedRow } from './all-rows.ts'
import { isRecord } from './api-caller.ts'
import { type ApiOutline, kindAt } from './api-outline.ts'
import { HelpText } from './help-text.tsx'
import { linkTo } from './page-location.ts'
import { PlainText } from './plain-text.tsx'
import { textIn } from './text-in.ts'

interface EdgeRoutesProps {
  readonly outline: ApiOutline
  /** The path of the edge. */
  readonly path: string
  readonly value: ListedRow
}

export function EdgeRoutes({ outline, path, value }: EdgeRoutesProps) {
  const kind = kindAt(outline, `${path}/routes`)?.kind
  if (!kind) return null
  const routes = (Array.isArray(value.routes) ? value.routes : []).filter(isRecord)
  return (
    <section class="card">
      <div class="view-head">
        <h2>Routes</h2>
        <div class="actions">
          <a class="button" href={linkTo(`${path}/routes`, { new: '' })}>
            New route
          </a>
        </div>
      </div>
      <p class="soft small">
        <HelpText text={kind.about} />
      </p>
      {routes.length === 0 && <p>No routes yet, so every request gets a 404.</p>}
      <ul class="routes">
        {routes.map((route) => (
          <li key={textIn(route.id)}>
            <a href={linkTo(`${path}/routes/${textIn(route.id)}`)}>
              <PlainText text={textIn(route.match ?? route.id)} most={100} />
            </a>
            <span class="soft small">{textIn(route.match_type ?? '')}</span>
            <span class="tags">
              {kind.modules
                .filter(({ name }) => isOn(route[name]))
                .map(({ name }) => (
                  <span class="tag" key={name}>
                    {name}
                  </span>
                ))}
            </span>
          </li>
        ))}
      </ul>
    </section>
  )
}

function isOn(config: unknown): boolean {
  return isRecord(config) && config.enabled === true
}
