/** Searches the orders of an account, at authorities that list them (RFC 8555 §7.1.2.1); not all do. */

import { fieldsOf } from './acme-problem.ts'
import { AcmeFault } from './order-fault.ts'

interface ListedOrders {
  /** Sends a request signed by the account. */
  readonly ask: (url: string) => Promise<{ readonly headers: Readonly<Record<string, string>>; readonly data: unknown }>
  readonly isSought: (order: Readonly<Record<string, unknown>>) => boolean
}

/** The most pages of a list that are read: some authorities have three orders per page. */
const MAX_PAGES = 20

/** The most orders that are read; authorities should omit finished ones. */
const MAX_ORDERS = 60

/** The first matching order, with its address; undefined if there is none, or no list. */
export async function findListed(
  accountUrl: string,
  { ask, isSought }: ListedOrders,
): Promise<{ readonly url: string; readonly order: unknown } | undefined> {
  const { orders } = fieldsOf((await ask(accountUrl)).data)
  if (typeof orders !== 'string') return undefined
  let next: string | undefined = orders
  let looks = 0
  for (let page = 0; page < MAX_PAGES && next !== undefined; page++) {
    const { data, headers } = await ask(next)
    const listed = fieldsOf(data).orders
    for (const url of Array.isArray(listed) ? listed : []) {
      if (typeof url !== 'string' || looks++ === MAX_ORDERS) return undefined
      const order = await ask(url).catch(skipMissing)
      if (order && isSought(fieldsOf(order.data))) return { url, order: order.data }
    }
    next = /<([^>]+)>\s*;\s*rel="?next"?/.exec(headers.link ?? '')?.[1]
  }
  return undefined
}

/** Lists may name orders that are gone by now. */
function skipMissing(error: unknown): undefined {
  if (!(error instanceof AcmeFault) || error.code === 'AUTHORITY_UNAVAILABLE') throw error
}
