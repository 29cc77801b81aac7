/** Pages of lists, and the refusal for a resource that does not exist. */

import { Refusal } from '../../model/errors.ts'
import { fitting, PAGE_REFS, refsIn } from '../records/page-bounds.ts'
import type { Resource } from '../resources/resource.ts'
import type { Links } from '../resources/resource-links.ts'
import type { Page } from './query.ts'

export function missing({ noun }: Resource): Refusal {
  return new Refusal('NOT_FOUND', `there is no ${noun} with this id`)
}

/** `found`, unless it is undefined: then throws the refusal. */
export function there<T>(resource: Resource, found: T | undefined): T {
  if (found === undefined) throw missing(resource)
  return found
}

/** What to look for: one more than the limit shows whether there is a next page. */
export function oneMore(page: Page): Page {
  return { ...page, limit: page.limit + 1 }
}

/** A page of `found`, which holds one entry more than fits when there is a next page. */
export function pageOf(
  found: readonly Readonly<Record<string, unknown>>[],
  resource: Resource,
  page: Page,
  links: Links,
) {
  const first = found.slice(0, page.limit)
  const items = first.slice(0, fitting(first.map(refsIn), PAGE_REFS))
  return envelope(resource, items, found.length > items.length ? String(items.at(-1)?.id) : undefined, page, links)
}

/** Contract 2.1: the paged list envelope. D3: the next page carries the limit. */
export function envelope(
  resource: Resource,
  items: readonly unknown[],
  lastId: string | undefined,
  page: Page,
  links: Links,
) {
  const uri = links.list(resource)
  const filters = new URLSearchParams(page.filters)
  const query = `before_id=${lastId}&limit=${page.limit}${filters.size > 0 ? `&${filters.toString()}` : ''}`
  const next = lastId === undefined ? null : `${uri}?${query}`
  return { [resource.listKey ?? '']: items, uri, next_page_uri: next }
}
