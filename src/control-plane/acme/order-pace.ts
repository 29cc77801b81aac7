/** How many orders may begin now. */
import type { CertificateReader } from '../store/certificate-reader.ts'

interface OrderRoom {
  /** Orders that are urgent. */
  readonly urgent: number
  /** Renewals that may wait; never more than `urgent`. */
  readonly paced: number
}

export const HOUR_MS = 3_600_000

/** The share of the hour's orders that renewals may use at once, so that a small platform renews all its certificates together. */
const AT_ONCE_PART = 1 / 5

/**
 * An hour is divided into so many parts, each with its own count of orders: minutes. Nodes look every few seconds, so they
 * would miss some of much shorter parts.
 */
const PARTS = 60

/**
 * First certificates are urgent, and may use all orders that the operator allows per hour. Renewals are not: beyond a few,
 * they are spread evenly over the hour.
 */
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
