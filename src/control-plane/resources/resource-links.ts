/** Addresses of resources: absolute, under the origin that the caller used. */
import type { Link } from '../../model/ref.ts'
import { resources } from './index.ts'
import type { Resource } from './resource.ts'

export interface Links {
  /** A reference to any resource whose path needs nothing but its id. */
  readonly to: Link
  /** The address of one resource. */
  readonly one: (resource: Resource, id: string, parentId: string | null) => string
  /** The address of a list. */
  readonly list: (resource: Resource) => string
}

const paths: ReadonlyMap<string, string> = new Map(resources.map(({ prefix, path }) => [prefix, path]))

/** Makes the addresses under `baseUrl`, which has no slash at its end. */
export function linksUnder(baseUrl: string): Links {
  return {
    to: (id) => ({ id, uri: `${baseUrl}${paths.get(id.slice(0, id.indexOf('_') + 1)) ?? ''}/${id}` }),
    one: ({ path }, id, parentId) => `${baseUrl}${path.replace(/\{\w+\}/, parentId ?? '')}/${id}`,
    list: ({ path }) => `${baseUrl}${path}`,
  }
}
