/** How many connections the system may hold for one listener until we accept them; it may hold fewer. */
export const BACKLOG = 4096
