/** The current place on the page: what follows `#` in the address. */

export interface PageLocation {
  /** Begins with `/`. For a resource it is its path in the API. */
  readonly path: string
  readonly query: URLSearchParams
}

export function readHash(hash: string): PageLocation {
  const [path = '', query = ''] = hash.replace(/^#/, '').split('?', 2)
  return { path: `/${path.replace(/^\/+|\/+$/g, '')}`, query: new URLSearchParams(query) }
}

/** The address of a place on the page. */
export function linkTo(path: string, query: Readonly<Record<string, string>> = {}): string {
  const text = new URLSearchParams(query).toString()
  return `#${path}${text === '' ? '' : `?${text}`}`
}

/** Whether `path` is `section` or lies below it. */
export function isWithin(path: string, section: string): boolean {
  return section === '/' ? path === '/' : path === section || path.startsWith(`${section}/`)
}
