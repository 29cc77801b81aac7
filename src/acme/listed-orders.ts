/** Looks through the orders of an account, at authorities that list them (RFC 8555 §7.1.2.1): not all do. */
import { AcmeFault } from './fault.ts'
import { fieldsOf } from './problem.ts'

export interface ListedOrders {
  /** Asks for what is at an address, in the name of the account. */
  readonly ask: (url: string) => Promise<{ readonly headers: Readonly<Record<string, string>>; readonly data: unknown }>
  readonly isSought: (order: Readonly<Record<string, unknown>>) => boolean
}

/** Pages of a list that are read at most: some authorities have three orders on each. */
const MAX_PAGES = 20

/** Orders that are looked at, at most; authorities should leave out those that are over. */
const MAX_ORDERS = 60

/** The first order that is sought, with its address; undefined when there is none, or no list. */
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
      const order = await ask(url).catch(passOver)
      if (order && isSought(fieldsOf(order.data))) return { url, order: order.data }
    }
    next = /<([^>]+)>\s*;\s*rel="?next"?/.exec(headers.link ?? '')?.[1]
  }
  return undefined
}

/** Lists may name orders that are gone by now. */
function passOver(error: unknown): undefined {
  if (!(error instanceof AcmeFault) || error.code === 'AUTHORITY_UNAVAILABLE') throw error
}
