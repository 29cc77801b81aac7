/** Which methods an address takes, for `Allow` and for preflights. */
import type { ApiRoute, Method } from './routes.ts'

/** The methods of the routes that match `url`, in the order of the table. The path of `url` must be decodable. */
export function methodsAt(routes: readonly ApiRoute[], url: string): readonly Method[] {
  const path = decodeURI(url.split('?')[0] ?? '')
    .replace(/\/{2,}/g, '/')
    .replace(/(?<=.)\/$/, '')
  return [...new Set(routes.filter((route) => fits(route.path, path)).map(({ method }) => method))]
}

function fits(pattern: string, path: string): boolean {
  const wanted = pattern.split('/')
  const given = path.split('/')
  return wanted.length === given.length && wanted.every((part, i) => part.startsWith('{') || part === given[i])
}
