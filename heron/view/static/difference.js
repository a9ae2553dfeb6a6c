// difference
export const difference = { name: "difference", title: "Differences", isEmpty: () => true, show: () => [] };
