/** Which rows of a long table are drawn: those in view, and a few around them. */

/** Rows beyond each edge of the view, so that quick scrolling shows no gap. */
const MARGIN = 12

interface Scrolled {
  readonly count: number
  readonly rowHeight: number
  readonly scrollTop: number
  readonly height: number
}

/** The rows from `from` up to, but not including, `to`, and the heights of the space above and below them, in pixels. */
export function rowWindow({ count, rowHeight, scrollTop, height }: Scrolled) {
  const first = Math.floor(Math.max(0, scrollTop) / rowHeight)
  const inSight = Math.ceil(Math.max(0, height) / rowHeight)
  // When a list gets shorter, the scroll position may be beyond its end for a moment.
  const from = Math.max(0, Math.min(first, count - inSight) - MARGIN)
  const to = Math.min(count, from + inSight + 2 * MARGIN)
  return { from, to, above: from * rowHeight, below: (count - to) * rowHeight }
}
