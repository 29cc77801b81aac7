/**
 * How many orders may begin now. Somebody waits for a first certificate: it may use all that the operator allows in an hour.
 * Nobody waits for a renewal: beyond a few, they are spread evenly over the hour.
 */
import type { CertificateReader } from '../store/certificate-reader.ts'

export interface OrderRoom {
  /** Orders that somebody waits for. */
  readonly urgent: number
  /** Renewals that may wait; never more than `urgent`. */
  readonly paced: number
}

export const HOUR_MS = 3_600_000

/** A part of the hour's orders that renewals begin without a pause, so that a small platform renews all it has at once. */
const AT_ONCE_PART = 1 / 5

/**
 * Parts of an hour whose orders are counted each by itself: minutes. Nodes look every few seconds; of much shorter parts
 * they would miss some.
 */
const PARTS = 60

export async function orderRoom(
  orders: Pick<CertificateReader, 'ordersWithin'>,
  ordersPerHour: number,
): Promise<OrderRoom> {
  const begun = await orders.ordersWithin(HOUR_MS)
  const urgent = Math.max(0, ordersPerHour - begun)
  const atOnce = Math.ceil(ordersPerHour * AT_ONCE_PART) - begun
  if (atOnce > 0) return { urgent, paced: atOnce }
  const parts = Math.min(ordersPerHour, PARTS)
  const lately = await orders.ordersWithin(Math.ceil(HOUR_MS / parts))
  return { urgent, paced: Math.max(0, Math.min(urgent, Math.ceil(ordersPerHour / parts) - lately)) }
}
