/** The private keys for ordering certificates: those of accounts at authorities, and of orders under way. */
import type { Writer } from '../store/writer.ts'
import type { Reseal } from './reseal-database.ts'

/** The context under which the key of an account is sealed. */
export function accountAt(directory: string): string {
  return `acme_accounts/${directory}/key`
}

/** The context under which the key of an order is sealed. */
export function orderAt(name: string): string {
  return `managed_names/${name}/order_key`
}

/** How many rows are held in memory at a time. */
const AT_A_TIME = 500

/** Seals all of these keys again; returns their number. */
export async function resealAcmeKeys({ certificates }: Writer, reseal: Reseal): Promise<number> {
  const accounts = await certificates.accounts()
  for (const { directory, key } of accounts) {
    await certificates.replaceAccountKey(directory, reseal(key, accountAt(directory)))
  }
  let count = accounts.length
  for (let after = ''; ; ) {
    const some = await certificates.namesWithKeys(after, AT_A_TIME)
    for (const { name, orderKey } of some) await certificates.replaceOrderKey(name, reseal(orderKey, orderAt(name)))
    count += some.length
    const last = some.at(-1)
    if (!last) return count
    after = last.name
  }
}
